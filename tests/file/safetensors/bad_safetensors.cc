// SPDX-License-Identifier: Apache-2.0
#include "berth/file/safetensors.h"
#include "file/bad_files.h"
#include "file/file_support.h"

namespace berth::testing {
namespace {

using enum ErrorCode;

const std::string kTensor = R"("dtype":"U8","shape":[4],"data_offsets":[0,4])";

std::string one(const std::string& members, const std::string& name = "t") { return "{\"" + name + "\":{" + members + "}}"; }

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return '"' + name + R"(":{"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + offsets + "]}";
}

void add_lengths(std::vector<BadFile>& all) {
  for (std::size_t bytes = 0; bytes <= 8; ++bytes)
    all.push_back({"F1", std::to_string(bytes) + " bytes", std::string(bytes, '\x02'), format_error, "too_small"});
  for (const std::uint64_t length : {3ULL, 100ULL, 65'536ULL, 100'000'000ULL})
    all.push_back({"F2", "a header of " + std::to_string(length), little(length, 8) + "{}", file_truncated, "header_length"});
  for (const std::uint64_t length : {100'000'001ULL, 1ULL << 32, 1ULL << 63, ~0ULL, ~0ULL - 7, ~0ULL - 8, 0x7FFFFFFFFFFFFFFFULL})
    all.push_back({"F2", "a header of " + std::to_string(length), little(length, 8) + "{}", limit_exceeded, "header_limit"});
  all.push_back({"F2", "no header", little(0, 8) + "{}", format_error, "header_start"});
}

void add_frames(std::vector<BadFile>& all) {
  for (const std::string start : {" {}", "\n{}", "\t{}", "\xef\xbb\xbf{}", "[]", "x", "\"a\"", "1", "null", "true", "}"})
    all.push_back({"F3", "begins with " + start, safetensors_bytes(start, 0), format_error, "header_start"});
  all.push_back({"F3", "begins with a zero byte", safetensors_bytes(std::string("\0{}", 3), 0), format_error, "header_start"});
  for (const std::string end : {"\n", "\t", "\r", " \n", "\n ", "{}"})
    all.push_back({"F3", "something else than spaces behind it", safetensors_bytes("{}" + end, 0), format_error, "header_padding"});
  for (const std::string& end :
       {std::string("\0", 1), std::string("x"), std::string(","), std::string("  PK"), std::string(" \0", 2), std::string("]")})
    all.push_back({"F3", "something behind it", safetensors_bytes("{}" + end, 0), format_error, "json"});
  for (const std::string inside : {"{", "{\"a\"", "{\"a\":", "{\"a\":{", "{\"a\" 1}", "{'a':1}", "{a:1}", "{\"a\":{}]", "{/**/}"})
    all.push_back({"F3", "broken: " + inside, safetensors_bytes(inside, 0), format_error, "json"});
  all.push_back({"F3", "a comma at the end", safetensors_bytes("{" + tensor("t", "U8", "4", "0,4") + ",}", 4), format_error, "json"});
  all.push_back({"F3", "no comma between members", safetensors_bytes(one(R"("dtype":"U8" "shape":[4])"), 4), format_error, "json"});
  all.push_back({"F3", "no comma between dimensions", safetensors_bytes(one(R"("shape":[4 4])"), 4), format_error, "json"});
}

void add_texts(std::vector<BadFile>& all) {
  const std::string bytes[] = {"\xff", "\xc0\x80",     "\xed\xa0\x80", "\xf4\x90\x80\x80",
                               "\xc3", "\xe0\x80\xaf", "\x80",         "\xf8\x88\x80\x80\x80"};
  const std::string escapes[] = {R"(\ud800)", R"(\udc00)", R"(\ud800\ud800)", R"(\udfffa)",
                                 R"(\u0000)", R"(\x)",     R"(\u12)",         R"(\ud83d\u0041)"};
  const auto everywhere = [&](const std::string& what, const std::string& text) {
    all.push_back({"F4", what + " in a name", safetensors_bytes(one(kTensor, "n" + text), 4), format_error, "utf8"});
    all.push_back({"F4", what + " in a member", safetensors_bytes(one(kTensor + ",\"" + text + "\":1"), 4), format_error, "utf8"});
    all.push_back({"F4", what + " in a dtype", safetensors_bytes(one("\"dtype\":\"" + text + '"'), 4), format_error, "utf8"});
    all.push_back({"F4", what + " in metadata", safetensors_bytes("{\"__metadata__\":{\"k\":\"" + text + "\"}}", 0), format_error, "utf8"});
    all.push_back(
        {"F4", what + " in a key of metadata", safetensors_bytes("{\"__metadata__\":{\"" + text + "\":\"\"}}", 0), format_error, "utf8"});
  };
  for (const std::string& text : bytes) everywhere("bytes that are not UTF-8", text);
  for (const std::string& text : escapes) everywhere("the escape " + text, text);
  for (const std::string control : {"\x01", "\n", "\x1f"})
    all.push_back({"F4", "a control character in a name", safetensors_bytes(one(kTensor, control), 4), format_error, "json"});
}

void add_numbers(std::vector<BadFile>& all) {
  for (const std::string number :
       {"-1", "-0", "1.0", "4e0", "1e999", "18446744073709551616", "99999999999999999999999", "\"4\"", "null", "true", "[4]", "{}"}) {
    all.push_back({"F5", "the dimension " + number, safetensors_bytes("{" + tensor("t", "U8", number, "0,4") + "}", 4), format_error,
                   "member_type", "t"});
    all.push_back({"F5", "the offset " + number, safetensors_bytes("{" + tensor("t", "U8", "4", "0," + number) + "}", 4), format_error,
                   "member_type", "t"});
  }
  for (const std::string number : {"0x4", "04", "4x", "+4", ".5", "4.", "NaN", "Infinity", "-"})
    all.push_back({"F5", "the dimension " + number, safetensors_bytes("{" + tensor("t", "U8", number, "0,4") + "}", 4), format_error,
                   "member_type", "t"});
  all.push_back({"F5", "a dimension of 64 bits", safetensors_bytes("{" + tensor("t", "U8", "9223372036854775808", "0,4") + "}", 4),
                 format_error, "shape", "t"});
  for (const std::size_t depth : {std::size_t{100}, std::size_t{1'000'000}}) {
    const std::string deep = std::string(depth, '[') + std::string(depth, ']');
    all.push_back({"F5", "lists in lists", safetensors_bytes("{\"t\":" + deep + "}", 0), format_error, "member_type", "t"});
    all.push_back({"F5", "lists in lists in a shape", safetensors_bytes(one("\"shape\":" + deep), 0), format_error, "member_type", "t"});
    all.push_back(
        {"F5", "lists in lists passed over", safetensors_bytes(one("\"more\":" + deep), 0), limit_exceeded, "nesting", "t", true});
  }
  std::string dims = "1";
  for (int i = 0; i < 64; ++i) dims += ",1";
  all.push_back({"F5", "65 dimensions", safetensors_bytes("{" + tensor("t", "U8", dims, "0,1") + "}", 1), limit_exceeded, "rank", "t"});
}

void add_keys(std::vector<BadFile>& all) {
  const std::string a = tensor("a", "U8", "2", "0,2");
  all.push_back({"F6", "a tensor twice", safetensors_bytes("{" + a + "," + tensor("a", "U8", "2", "2,4") + "}", 4), format_error,
                 "duplicate_key", "a"});
  all.push_back(
      {"F6", "a tensor twice in the same place", safetensors_bytes("{" + a + "," + a + "}", 2), format_error, "duplicate_key", "a"});
  all.push_back({"F6", "a tensor twice, once escaped", safetensors_bytes("{" + a + "," + tensor("\\u0061", "U8", "2", "2,4") + "}", 4),
                 format_error, "duplicate_key", "a"});
  for (const std::string member : {R"("dtype":"U8")", R"("shape":[4])", R"("data_offsets":[0,4])", R"("\u0073hape":[4])"})
    all.push_back({"F6", member + " twice", safetensors_bytes(one(kTensor + "," + member), 4), format_error, "duplicate_key", "t"});
  all.push_back({"F6", "metadata twice", safetensors_bytes(R"({"__metadata__":{},"__metadata__":{}})", 0), format_error, "duplicate_key"});
  all.push_back({"F6", "metadata twice, once escaped", safetensors_bytes(R"({"__metadata__":{},"\u005f_metadata__":{}})", 0), format_error,
                 "duplicate_key"});
  all.push_back(
      {"F6", "a key of metadata twice", safetensors_bytes(R"({"__metadata__":{"k":"1","\u006b":"1"}})", 0), format_error, "duplicate_key"});
}

void add_members(std::vector<BadFile>& all) {
  for (const std::string members :
       {R"("shape":[4],"data_offsets":[0,4])", R"("dtype":"U8","data_offsets":[0,4])", R"("dtype":"U8","shape":[4])", ""}) {
    all.push_back({"F7", "a member is missing", safetensors_bytes(one(members), 4), format_error, "member_missing", "t"});
    all.push_back({"F7", "a member is missing, read lax", safetensors_bytes(one(members), 4), format_error, "member_missing", "t", true});
  }
  all.push_back({"F7", "a member too many", safetensors_bytes(one(kTensor + ",\"strides\":[1]"), 4), format_error, "member_unknown", "t"});
  for (const std::string value : {"null", "1", "\"x\"", "[]", "true"}) {
    all.push_back({"F7", "a tensor that is " + value, safetensors_bytes("{\"t\":" + value + "}", 0), format_error, "member_type", "t"});
    all.push_back(
        {"F7", "metadata that is " + value, safetensors_bytes("{\"__metadata__\":" + value + "}", 0), format_error, "member_type"});
  }
  for (const std::string value : {"null", "1", "{}", "[]", "false", "1.5"}) {
    all.push_back({"F7", "a value of metadata that is " + value, safetensors_bytes("{\"__metadata__\":{\"k\":" + value + "}}", 0),
                   format_error, "member_type"});
    all.push_back({"F7", "a dtype that is " + value, safetensors_bytes(one("\"dtype\":" + value), 4), format_error, "member_type", "t"});
  }
  for (const std::string value : {"null", "4", "{}", "\"4\""}) {
    all.push_back({"F7", "a shape that is " + value, safetensors_bytes(one("\"shape\":" + value), 4), format_error, "member_type", "t"});
    all.push_back(
        {"F7", "offsets that are " + value, safetensors_bytes(one("\"data_offsets\":" + value), 4), format_error, "member_type", "t"});
  }
  for (const std::string dtype : {"F7", "f32", "", "float32", "F32 ", "F8_E4M3FN", "BFLOAT16"})
    all.push_back(
        {"F7", "the dtype " + dtype, safetensors_bytes("{" + tensor("t", dtype, "1", "0,4") + "}", 4), unsupported_dtype, "dtype", "t"});
}

void add_places(std::vector<BadFile>& all) {
  for (const std::string offsets : {"", "0", "0,4,8"})
    all.push_back({"F8", "offsets [" + offsets + "]", safetensors_bytes("{" + tensor("t", "U8", "4", offsets) + "}", 4), format_error,
                   "offsets", "t"});
  for (const std::string offsets : {"4,0", "5,4", "18446744073709551615,0"})
    all.push_back({"F8", "it ends before it begins", safetensors_bytes("{" + tensor("t", "U8", "4", offsets) + "}", 4), format_error,
                   "offsets", "t"});
  for (const std::string offsets : {"0,5", "1,5", "4,8", "0,18446744073709551615", "18446744073709551611,18446744073709551615",
                                    "9223372036854775807,9223372036854775811"})
    all.push_back({"F8", "it ends past the file: " + offsets, safetensors_bytes("{" + tensor("t", "U8", "4", offsets) + "}", 4),
                   file_truncated, "file_truncated", "t"});
  const auto two = [](const std::string& a, const std::string& b, std::size_t bytes) {
    return safetensors_bytes("{" + tensor("a", "U8", "4", a) + "," + tensor("b", "U8", "4", b) + "}", bytes);
  };
  all.push_back({"F8", "one byte is of both", two("0,4", "3,7", 7), format_error, "overlap", "b"});
  all.push_back({"F8", "both have the same bytes", two("0,4", "0,4", 4), format_error, "overlap", "b"});
  all.push_back({"F8", "the later overlaps, and stands first", two("3,7", "0,4", 7), format_error, "overlap", "a"});
  std::string names = "{";
  for (int i = 0; i < 10; ++i) names += (i == 0 ? "" : ",") + tensor("weight_" + std::to_string(i), "F32", "2,2", "0,16");
  all.push_back({"F8", "ten names for one range", safetensors_bytes(names + "}", 16), format_error, "overlap", "weight_1"});
  all.push_back({"F8", "one inside the other",
                 safetensors_bytes("{" + tensor("a", "U8", "8", "0,8") + "," + tensor("b", "U8", "2", "2,4") + "}", 8), format_error,
                 "overlap", "b"});
  all.push_back({"F8", "a hole in front", safetensors_bytes("{" + tensor("a", "U8", "4", "1,5") + "}", 5), format_error, "hole", "a"});
  all.push_back({"F8", "a hole between", two("0,4", "5,9", 9), format_error, "hole", "b"});
  all.push_back(
      {"F8", "a hole in front of no elements", safetensors_bytes("{" + tensor("a", "U8", "0", "1,1") + "}", 1), format_error, "hole", "a"});
  for (const std::size_t more : {1U, 7U, 4096U})
    all.push_back({"F8", std::to_string(more) + " bytes behind the last",
                   safetensors_bytes("{" + tensor("t", "U8", "4", "0,4") + "}", 4 + more), format_error, "trailing_bytes"});
  all.push_back({"F8", "bytes, and no tensors", safetensors_bytes("{}", 1), format_error, "trailing_bytes"});
  all.push_back({"F9", "no elements, and a hole behind",
                 safetensors_bytes("{" + tensor("a", "U8", "0", "0,0") + "," + tensor("b", "U8", "1", "1,2") + "}", 2), format_error,
                 "hole", "b"});
}

void add_sizes(std::vector<BadFile>& all) {
  for (const SafetensorsDType& dtype : safetensors_dtypes()) {
    const std::size_t right = static_cast<std::size_t>(dtype.bits) * 8 / 8;  // eight elements
    for (const std::size_t bytes : {right - 1, right + 1}) {
      const std::string header = "{" + tensor("t", std::string(dtype.name), "2,4", "0," + std::to_string(bytes)) + "}";
      all.push_back({"F10", "eight of " + std::string(dtype.name) + " in " + std::to_string(bytes), safetensors_bytes(header, bytes),
                     size_mismatch, "size_mismatch", "t"});
    }
  }
  all.push_back({"F10", "three halves of a byte", safetensors_bytes("{" + tensor("t", "F4", "3", "0,2") + "}", 2), size_mismatch,
                 "size_mismatch", "t"});
  for (const std::string shape :
       {"4611686018427387904,4", "9223372036854775807,9223372036854775807", "4294967296,4294967296,4294967296", "2305843009213693952"})
    all.push_back({"F10", "as many as " + shape, safetensors_bytes("{" + tensor("t", "F64", shape, "0,8") + "}", 8), size_mismatch,
                   "size_mismatch", "t"});
  all.push_back({"F10", "a scalar of no bytes", safetensors_bytes("{" + tensor("t", "F32", "", "0,0") + "}", 0), size_mismatch,
                 "size_mismatch", "t"});
  all.push_back({"F10", "bytes for no elements", safetensors_bytes("{" + tensor("t", "F32", "0,9223372036854775807", "0,4") + "}", 4),
                 size_mismatch, "size_mismatch", "t"});
}

void add_cuts(std::vector<BadFile>& all) {
  const std::string whole = good_safetensors();
  const std::size_t data = 8 + whole.substr(8).find("}}") + 2;
  for (std::size_t cut = 1; cut <= 8; ++cut)
    all.push_back({"F11", std::to_string(cut) + " bytes of the data are missing", whole.substr(0, whole.size() - cut), file_truncated,
                   "file_truncated"});
  for (const std::size_t left : {data - 1, data / 2, std::size_t{9}})
    all.push_back({"F27", "the header is not there yet", whole.substr(0, left), file_truncated, "header_length"});
  all.push_back({"F27", "room was made and nothing written", std::string(4096, '\0'), format_error, "header_start"});
}

}  // namespace

std::string good_safetensors() {
  return safetensors_bytes("{\"__metadata__\":{\"format\":\"pt\"}," + tensor("layer.0.weight", "F32", "2,3", "0,24") + "," +
                               tensor("layer.0.bias", "BF16", "3", "24,30") + "," + tensor("none", "I64", "0", "30,30") + "," +
                               tensor("scale", "F8_E8M0", "", "30,31") + "," + tensor("\\u00e9/..\\n", "U8", "1", "31,32") + "}",
                           32);
}

std::vector<std::string> all_good_safetensors() {
  std::string dtypes = "{";
  std::size_t at = 0;
  for (const auto& [name, bytes] : std::map<std::string, std::size_t>{{"BOOL", 1},
                                                                      {"U8", 1},
                                                                      {"I8", 1},
                                                                      {"F8_E5M2", 1},
                                                                      {"F8_E4M3", 1},
                                                                      {"I16", 2},
                                                                      {"U16", 2},
                                                                      {"F16", 2},
                                                                      {"I32", 4},
                                                                      {"U32", 4},
                                                                      {"F64", 8},
                                                                      {"U64", 8},
                                                                      {"C64", 8}}) {
    dtypes += (at == 0 ? "" : ",") + tensor(name, name, "1", std::to_string(at) + ',' + std::to_string(at + bytes));
    at += bytes;
  }
  return {good_safetensors(),
          safetensors_bytes("{}", 0),
          safetensors_bytes(R"({"__metadata__":{}}   )", 0),
          safetensors_bytes(dtypes + "}", at),
          safetensors_bytes("{" + tensor("b", "U8", "2", "3,5") + "," + tensor("a", "U8", "3", "0,3") + "}", 5),
          safetensors_bytes("{" + tensor("half", "F4", "3,2", "0,3") + "," + tensor("none", "F32", "4,0", "0,0") + "}", 3)};
}

std::vector<BadFile> bad_safetensors() {
  std::vector<BadFile> all;
  for (const auto add : {add_lengths, add_frames, add_texts, add_numbers, add_keys, add_members, add_places, add_sizes, add_cuts}) add(all);
  return all;
}

}  // namespace berth::testing
