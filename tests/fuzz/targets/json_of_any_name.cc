// SPDX-License-Identifier: Apache-2.0
#include <simdjson.h>

#include <string>

#include "berth/base/json.h"
#include "fuzz/target.h"

// JSON that berth writes is valid whatever names are in it.
namespace berth::testing::fuzz {
namespace {

void run(std::string_view bytes) {
  Draw draw(bytes);
  const std::string_view key = draw.bytes(draw.byte());
  const std::string_view value = draw.rest();
  JsonWriter json;
  json.begin_object().member(key, value).key("all").begin_array().value(key).value(value).end_array().end_object();
  static simdjson::dom::parser parser;
  require(parser.parse(json.take()).error() == simdjson::SUCCESS, "what is written is JSON");
}

const Registered json_of_any_name({.name = "json_of_any_name",
                                   .run = run,
                                   .words = {"\x1b[0m", "\"", "\\", "\xf0\x9f\x98\x80", "\xed\xa0\x80", "\xc0\x80"}});

}  // namespace
}  // namespace berth::testing::fuzz
