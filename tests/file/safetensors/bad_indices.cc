// SPDX-License-Identifier: Apache-2.0
#include "file/bad_files.h"
#include "file/file_support.h"

namespace berth::testing {
namespace {

using enum ErrorCode;

std::string shard(const std::string& names) {
  std::string header = "{";
  std::size_t at = 0;
  for (const char name : names) {
    header += (at == 0 ? "\"" : ",\"") + std::string(1, name) + R"(":{"dtype":"U8","shape":[4],"data_offsets":[)" + std::to_string(at) +
              ',' + std::to_string(at + 4) + "]}";
    at += 4;
  }
  return safetensors_bytes(header + "}", at);
}

std::string map_of(const std::string& rows) { return R"({"metadata":{"total_size":12},"weight_map":{)" + rows + "}}"; }
const std::string kRows = R"("x":"a.safetensors","y":"a.safetensors","z":"b.safetensors")";

}  // namespace

std::map<std::string, std::string> good_shards() { return {{"a.safetensors", shard("xy")}, {"b.safetensors", shard("z")}}; }
std::string good_index() { return map_of(kRows) + "\n"; }

std::vector<std::string> all_good_indices() {
  return {good_index(), R"({"weight_map":{}})", R"({"weight_map":{"a\u0078":"sub/\u00e9.safetensors"},"metadata":{}})",
          R"({"metadata":{"of":[1,-2.5e3,true,null,"a\n",{"b":{}}],"total_size":0},"weight_map":{"..":"..a"}})"};
}

std::vector<BadFile> bad_indices() {
  std::vector<BadFile> all;
  for (const std::string path : {"../a.safetensors", "/etc/passwd", "a/../../x", "", ".", "..", "./a.safetensors", "sub//a",
                                 "a.safetensors/", "sub/../a.safetensors", "sub/.", "/", "//", "sub/..", "..\\u002fa.safetensors"})
    all.push_back({"F23", "the path " + path, map_of("\"x\":\"" + path + "\""), path_escape, "path_escape", "x"});
  const auto add = [&](std::string what, std::string bytes, std::string rule, std::string name = {},
                       std::map<std::string, std::string> beside = good_shards()) {
    all.push_back({"F23", std::move(what), std::move(bytes), format_error, std::move(rule), std::move(name), false, std::move(beside)});
  };
  add("a file that is not there", map_of(R"("x":"c.safetensors")"), "missing_shard");
  add("a folder that is not there", map_of(R"("x":"c/a.safetensors")"), "missing_shard");
  add("a tensor that is not there", map_of(kRows + R"(,"w":"b.safetensors")"), "missing_tensor", "w");
  add("a tensor that is in another file", map_of(R"("x":"b.safetensors","y":"a.safetensors","z":"b.safetensors")"), "duplicate_tensor",
      "x");
  add("a tensor in two files", map_of(kRows), "duplicate_tensor", "x", {{"a.safetensors", shard("xy")}, {"b.safetensors", shard("zx")}});
  add("a tensor that the index does not name", map_of(R"("x":"a.safetensors","z":"b.safetensors")"), "not_in_index", "y");
  for (const std::string size : {"0", "11", "13", "18446744073709551615"})
    add("a total of " + size, R"({"metadata":{"total_size":)" + size + R"(},"weight_map":{)" + kRows + "}}", "total_size");
  for (const std::string size : {"-1", "12.0", "\"12\"", "null", "1e1", "18446744073709551616"})
    add("a total of " + size, R"({"metadata":{"total_size":)" + size + R"(},"weight_map":{)" + kRows + "}}", "member_type");
  add("a total twice", R"({"metadata":{"total_size":12,"total_size":12},"weight_map":{)" + kRows + "}}", "duplicate_key");
  add("metadata twice", R"({"metadata":{},"metadata":{},"weight_map":{)" + kRows + "}}", "duplicate_key");
  add("the map twice", R"({"weight_map":{},"weight_map":{)" + kRows + "}}", "duplicate_key");
  add("a tensor twice", map_of(kRows + R"(,"x":"a.safetensors")"), "duplicate_key", "x");
  add("a tensor twice, once escaped", map_of(kRows + R"(,"\u0078":"b.safetensors")"), "duplicate_key", "x");
  add("no map", R"({"metadata":{}})", "member_missing");
  add("nothing in it", "{}", "member_missing");
  for (const std::string value : {"null", "[]", "\"a\"", "1", "true"}) {
    add("a map that is " + value, R"({"weight_map":)" + value + "}", "member_type");
    add("metadata that is " + value, R"({"metadata":)" + value + "}", "member_type");
    if (value != "\"a\"") add("a file that is " + value, R"({"weight_map":{"x":)" + value + "}}", "member_type", "x");
  }
  add("a member too many", R"({"weight_map":{},"more":1})", "member_unknown");
  for (const std::string text : {"[]", "1", "null", "\"a\""}) add("it is " + text, text, "member_type");
  for (const std::string text : {"{", "{\"weight_map\":{}", "{}x", "{]", "{\"a\"}"}) add("broken: " + text, text, "json");
  add("empty", "", "json");
  add("blanks", "  \n", "json");
  add("a mark of UTF-8", "\xef\xbb\xbf{}", "member_type");
  add("two of them", "{\"weight_map\":{}}{}", "header_padding");
  add("a name that is not UTF-8", map_of("\"\xff\":\"a.safetensors\""), "utf8");
  add("a path that is not UTF-8", map_of("\"x\":\"\\udc00\""), "utf8", "x");
  add("a path with a zero byte", map_of(R"("x":"a.safetensors\u0000")"), "utf8", "x");
  add("a file that is empty", map_of(kRows), "too_small", {}, {{"a.safetensors", ""}, {"b.safetensors", shard("z")}});
  all.push_back({"F23",
                 "a file that was cut",
                 map_of(kRows),
                 file_truncated,
                 "file_truncated",
                 "y",
                 false,
                 {{"a.safetensors", shard("xy").substr(0, shard("xy").size() - 1)}}});
  all.push_back({"F23", "nesting in what is passed over",
                 R"({"metadata":{"m":)" + std::string(100, '[') + std::string(100, ']') + R"(},"weight_map":{}})", limit_exceeded,
                 "nesting"});
  return all;
}

}  // namespace berth::testing
