// SPDX-License-Identifier: Apache-2.0
#include "file/bad_files.h"
#include "file/file_support.h"

namespace berth::testing {
namespace {

using enum ErrorCode;

std::string start(int major, int minor, std::uint64_t length, std::size_t length_bytes) {
  return std::string("\x93NUMPY") + static_cast<char>(major) + static_cast<char>(minor) + little(length, length_bytes);
}

std::string npy(const std::string& dictionary, std::size_t data_bytes) {
  return start(1, 0, dictionary.size(), 2) + dictionary + std::string(data_bytes, '\x01');
}

std::string dict(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

void add_starts(std::vector<BadFile>& all) {
  const std::string whole = good_npy();
  for (std::size_t bytes = 0; bytes < 12; ++bytes)
    all.push_back({"F21", std::to_string(bytes) + " bytes", whole.substr(0, bytes), format_error, "too_small"});
  for (const std::string magic : {"\x93NUMPX", "\x92NUMPY", "NUMPY\x93", "PK\x03\x04\x01\x01"})
    all.push_back({"F21", "another magic", magic + whole.substr(6), format_error, "magic"});
  for (const int major : {0, 4, 127, 255})
    all.push_back({"F21", "version " + std::to_string(major), start(major, 0, 64, 4) + std::string(100, ' '), version_mismatch, "version"});
  all.push_back({"F21", "version 1.1", start(1, 1, 64, 2) + std::string(100, ' '), version_mismatch, "version"});
  all.push_back({"F21", "a header of nothing", start(1, 0, 0, 2) + "{}", format_error, "dictionary"});
  for (const std::uint64_t length : {10'001ULL, 65'535ULL})
    all.push_back(
        {"F21", "a header of " + std::to_string(length), start(1, 0, length, 2) + std::string(100, ' '), limit_exceeded, "header_limit"});
  for (const std::uint64_t length : {10'001ULL, 0xFFFFFFFFULL, 0x80000000ULL})
    all.push_back(
        {"F21", "a header of " + std::to_string(length), start(2, 0, length, 4) + std::string(100, ' '), limit_exceeded, "header_limit"});
  for (const std::uint64_t length : {101ULL, 10'000ULL})
    all.push_back({"F21", "a header past the file", start(1, 0, length, 2) + std::string(100, ' '), file_truncated, "header_length"});
  for (const std::size_t left : {std::size_t{12}, std::size_t{50}, std::size_t{127}})
    all.push_back({"F22", "cut in the header", whole.substr(0, left), file_truncated, "header_length"});
}

void add_shapes(std::vector<BadFile>& all) {
  const auto add = [&](const std::string& shape) {
    all.push_back({"F21", "the shape " + shape, npy(dict("'<f4'", "False", shape), 4), format_error, "shape"});
  };
  for (const std::string leading : {"(01,)", "(00,)", "(1, 01)", "(001L,)"}) add(leading);
  for (const std::string uncounted : {"(0, 4611686018427387904)", "(2305843009213693952, 0)", "(4294967296, 2147483648, 0)",
                                      "(0, 9223372036854775807, 9223372036854775807)", "(9223372036854775808, 0)"})
    add(uncounted);
}

void add_dictionaries(std::vector<BadFile>& all) {
  const auto add = [&](const std::string& dictionary, const std::string& rule, ErrorCode code = format_error) {
    all.push_back({"F21", "the header " + dictionary.substr(0, 60), npy(dictionary, 4), code, rule});
  };
  for (const std::string text :
       {"", " ", "x", "[]", "()", "{'descr'", "{'descr' '<f4'}", "{'descr': '<f4'", "{'descr': '<f4' 'shape': ()}", "{'descr': '<f4"})
    add(text, "dictionary");
  add("{'a\\x41': 1}", "dictionary");
  add("{", "member_type");
  add("{,}", "member_type");
  add("{descr: '<f4'}", "member_type");
  add("{1: 2}", "member_type");
  add("{}", "member_missing");
  add("{'fortran_order': False, 'shape': (1,)}", "member_missing");
  add("{'descr': '<f4', 'shape': (1,)}", "member_missing");
  add("{'descr': '<f4', 'fortran_order': False}", "member_missing");
  add("{'descr': '<f4', 'descr': '<f4'}", "duplicate_key");
  add("{'shape': (), 'shape': ()}", "duplicate_key");
  add("{'more': 1}", "member_unknown");
  add("{'__class__': 1}", "member_unknown");
  for (const std::string order : {"1", "0", "None", "'False'", "true", "not True", "", "Tru"})
    add(dict("'<f4'", order, "(1,)"), "member_type");
  add("{'fortran_order': Falsehood}", "dictionary");
  for (const std::string descr : {"4", "None", "('<f4',)", "b'<f4'", "u'<f4'", "f()"}) add(dict(descr, "False", "(1,)"), "member_type");
  add(dict("[('a', '<f4')]", "False", "(1,)"), "structured", unsupported_dtype);
  for (const std::string descr : {"'|O'", "'O'", "'|O8'", "'<O'", "'>O8'"}) add(dict(descr, "False", "(1,)"), "pickle", unsupported_dtype);
  for (const std::string descr : {"'>f4'", "'>i8'", "'=f4'", "'<f16'", "'<U4'", "'|S4'", "'<M8[s]'", "'<m8'", "'|V0'", "'|V'", "'|Vx'",
                                  "'f4'", "''", "'|'", "'<V4'", "'|V99999999999999999999'"})
    add(dict(descr, "False", "(1,)"), "dtype", unsupported_dtype);
  for (const std::string shape : {"1", "[1]", "None", "'(1,)'", "{1}", "range(1)", "(1)", "(4)"})
    add(dict("'|u1'", "False", shape), "member_type");
  for (const std::string shape : {"(-1,)", "(1.0,)", "(0x1,)", "(9223372036854775808,)", "(99999999999999999999,)", "(1,,)", "(,)", "(a,)",
                                  "(1, (2,))", "(2**63,)", "(1 1)", "(True,)", "(1", "(1,", "((((1", "(+1,)"})
    add(dict("'|u1'", "False", shape), "shape");
  add(dict("'|u1'", "False", std::string(5000, '(')), "shape");
  add("{'shape': " + std::string(5000, '{'), "member_type");
  std::string dims = "(";
  for (int i = 0; i < 65; ++i) dims += "1,";
  add(dict("'|u1'", "False", dims + ")"), "rank", limit_exceeded);
  for (const std::string behind : {"x", "{}", "__import__('os')"})
    add("{'descr': '|u1', 'fortran_order': False, 'shape': (4,)}" + behind, "header_padding");
  add(std::string("{'descr': '|u1', 'fortran_order': False, 'shape': (4,)}\0", 56), "header_padding");
}

void add_data(std::vector<BadFile>& all) {
  const std::string four = dict("'<f4'", "False", "(2, 2)");
  for (const std::size_t bytes : {0U, 1U, 15U})
    all.push_back({"F22", std::to_string(bytes) + " bytes of 16", npy(four, bytes), file_truncated, "file_truncated"});
  for (const std::size_t bytes : {17U, 32U})
    all.push_back({"F22", std::to_string(bytes) + " bytes of 16", npy(four, bytes), format_error, "trailing_bytes"});
  all.push_back(
      {"F22", "bytes for no elements", npy(dict("'<f4'", "False", "(0, 2305843009213693951)"), 1), format_error, "trailing_bytes"});
  for (const std::string shape :
       {"(9223372036854775807,)", "(4294967296, 4294967296)", "(2305843009213693952, 8)", "(9223372036854775807, 9223372036854775807)"})
    all.push_back({"F22", "as many as " + shape, npy(dict("'<f8'", "False", shape), 16), file_truncated, "file_truncated"});
}

}  // namespace

std::string good_npy() {
  std::string dictionary = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
  dictionary.resize(117, ' ');
  return npy(dictionary + '\n', 24);
}

std::vector<std::string> all_good_npy() {
  std::vector<std::string> all{good_npy()};
  const auto add = [&](const std::string& dictionary, std::size_t bytes) { all.push_back(npy(dictionary, bytes)); };
  add(dict("'<f8'", "False", "()"), 8);
  add(dict("'<c16'", "True", "(1,)"), 16);
  add(dict("'<i2'", "False", "(0, 1152921504606846975, 2)"), 0);
  add(dict("'|V2'", "False", "(3,)"), 6);
  add("{\"shape\":(2L,3L),\"fortran_order\":True,\"descr\":\"|b1\"}", 6);
  for (const int major : {2, 3}) all.push_back(start(major, 0, 54, 4) + "{'descr': '|u1', 'fortran_order': False, 'shape': ()} " + "\x01");
  return all;
}

std::vector<BadFile> bad_npy() {
  std::vector<BadFile> all;
  for (const auto add : {add_starts, add_shapes, add_dictionaries, add_data}) add(all);
  return all;
}

}  // namespace berth::testing
