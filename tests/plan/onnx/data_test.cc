// SPDX-License-Identifier: Apache-2.0
#include <protozero/pbf_writer.hpp>

#include "cli/samples/sample_models.h"
#include "support/errors.h"
#include "support/onnx_writer.h"

// The data of tensors, in the model and in files beside it.
namespace berth::testing {

namespace {

std::string with_weight(const std::string& tensor_bytes) {
  GraphWriter graph;
  graph.input("x", kFloat, {2, 3}).initializer(tensor_bytes);
  return graph.node("Use", {"x", "w"}, {"y"}).value_info("y", kFloat, {2}).output("y", kFloat).model();
}

// ---- In the model.

std::string typed_tensor(std::int64_t elem, std::int64_t count, std::uint32_t number, std::size_t entries) {
  std::string out = tensor("w", elem, {count}, "");
  out.resize(out.size() - 2);  // without the raw data
  protozero::pbf_writer writer(out);
  for (std::size_t i = 0; i < entries; ++i) {
    if (number == 4) writer.add_float(number, 1);
    if (number == 10) writer.add_double(number, 1);
    if (number == 6) writer.add_string(number, "s");
    if (number == 5 || number == 7 || number == 11) writer.add_int64(number, 1);
  }
  return out;
}

TEST(OnnxData, RefusesDataThatAreNotAsManyAsTheShapeSays) {
  EXPECT_EQ(shape_of(read_onnx(with_weight(tensor("w", kFloat, {2, 3}, std::string(24, 'x')))), "w"), "f32 [2, 3]");
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{23}, std::size_t{25}, std::size_t{48}})
    EXPECT_ERROR(read_onnx(with_weight(tensor("w", kFloat, {2, 3}, std::string(bytes, 'x')))), FormatError, ErrorCode::size_mismatch);
  EXPECT_EQ(shape_of(read_onnx(with_weight(tensor("w", kFloat, {0, 3}, ""))), "w"), "f32 [0, 3]");
  EXPECT_EQ(shape_of(read_onnx(with_weight(tensor("w", 22, {5}, "xyz"))), "w"), "3 bytes [5]") << "two elements of 4 bits in a byte";
  EXPECT_ERROR(read_onnx(with_weight(tensor("w", 22, {5}, "xy"))), FormatError, ErrorCode::size_mismatch);
}

TEST(OnnxData, CountsWhatTypedFieldsHold) {
  struct Row {
    std::int64_t elem;
    std::uint32_t field;
    std::size_t entries;  // for three elements
  };
  for (const Row& row : {Row{kFloat, 4, 3},
                         {kComplex64, 4, 6},
                         {kInt32, 5, 3},
                         {kInt8, 5, 3},
                         {kBool, 5, 3},
                         {kFloat16, 5, 3},
                         {22, 5, 2},
                         {25, 5, 1},
                         {kInt64, 7, 3},
                         {kDouble, 10, 3},
                         {kComplex128, 10, 6},
                         {kUint64, 11, 3},
                         {kUint32, 11, 3},
                         {kString, 6, 3}}) {
    EXPECT_EQ(read_onnx(with_weight(typed_tensor(row.elem, 3, row.field, row.entries))).weights, 1U) << row.elem;
    EXPECT_ERROR(read_onnx(with_weight(typed_tensor(row.elem, 3, row.field, row.entries + 1))), FormatError, ErrorCode::size_mismatch);
    EXPECT_ERROR(read_onnx(with_weight(typed_tensor(row.elem, 3, row.field, row.entries - 1))), FormatError, ErrorCode::size_mismatch);
    EXPECT_ERROR(read_onnx(with_weight(typed_tensor(row.elem, 3, row.field == 4 ? 7 : 4, 3))), FormatError, ErrorCode::size_mismatch);
  }
}

TEST(OnnxData, RefusesDataThatAreGivenTwice) {
  std::string both = tensor("w", kFloat, {1}, "1234");
  protozero::pbf_writer(both).add_float(4, 1);
  EXPECT_ERROR(read_onnx(with_weight(both)), FormatError, ErrorCode::size_mismatch);
  std::string outside = external_tensor("w", kFloat, {1}, {{"location", "w.bin"}});
  protozero::pbf_writer(outside).add_bytes(9, "1234");
  EXPECT_ERROR(read_onnx(with_weight(outside), {.external_size = [](const auto&) { return 4; }}), FormatError, ErrorCode::size_mismatch);
}

TEST(OnnxData, RefusesShapesThatCannotBe) {
  EXPECT_ERROR(read_onnx(with_weight(tensor("w", kFloat, {-1, 3}, ""))), FormatError, ErrorCode::format_error);
  EXPECT_ERROR(read_onnx(with_weight(tensor("w", kFloat, {INT64_MIN}, ""))), FormatError, ErrorCode::format_error);
  const std::int64_t giant = std::int64_t{1} << 62;
  EXPECT_ERROR(read_onnx(with_weight(tensor("w", kFloat, {giant}, ""))), FormatError, ErrorCode::size_overflow);
  EXPECT_ERROR(read_onnx(with_weight(tensor("w", kFloat, {giant, giant, giant}, ""))), FormatError, ErrorCode::size_overflow);
  EXPECT_ERROR(read_onnx(with_weight(tensor("w", kUint8, std::vector<std::int64_t>(65, 1), "x"))), FormatError, ErrorCode::format_error);
}

TEST(OnnxData, ChecksTensorsOfNodesToo) {
  GraphWriter graph;
  graph.node("Constant", {}, {"y"}, {tensor_value("value", tensor("", kFloat, {2}, "1234"))}).output("y", kFloat);
  EXPECT_ERROR(read_onnx(graph.model()), FormatError, ErrorCode::size_mismatch);
}

// ---- In files beside it.

using Entries = std::vector<WrittenEntry>;

OnnxModel read_with_file(const Entries& entries, std::optional<std::uint64_t> size) {
  return read_onnx(with_weight(external_tensor("w", kFloat, {4}, entries)), {.external_size = [=](const std::string&) { return size; }});
}

TEST(OnnxData, AsksForTheSizeOfEachFileOnce) {
  GraphWriter graph;
  graph.input("x", kFloat, {2});
  std::vector<std::string> inputs = {"x"};
  for (const char* const name : {"a", "b", "c"}) {
    graph.initializer(
        external_tensor(name, kFloat, {4}, {{"location", name[0] == 'c' ? "./two.bin" : "folder/one.bin"}, {"length", "16"}}));
    inputs.emplace_back(name);
  }
  graph.node("Use", inputs, {"y"}).value_info("y", kFloat, {2}).output("y", kFloat);
  std::vector<std::string> asked;
  const auto answer = [&](const std::string& path) {
    asked.push_back(path);
    return std::optional<std::uint64_t>(16);
  };
  EXPECT_EQ(read_onnx(graph.model(), {.external_size = answer}).weight_bytes, 48U);
  EXPECT_EQ(asked, (std::vector<std::string>{"folder/one.bin", "./two.bin"}));
}

TEST(OnnxData, RefusesLocationsThatCouldLeadOut) {
  for (const std::string& location :
       {std::string("../w.bin"), std::string("a/../../w.bin"), std::string(".."), std::string("a/.."), std::string("/etc/passwd"),
        std::string("/proc/self/mem"), std::string("~/w.bin"), std::string("a\0b", 3), std::string("a\\b"), std::string("..\\w.bin"),
        std::string("C:w.bin"), std::string("folder/"), std::string()}) {
    EXPECT_ERROR(read_with_file({{"location", location}}, 1000), FormatError, ErrorCode::path_escape);
  }
  EXPECT_ERROR(read_with_file({}, 1000), FormatError, ErrorCode::path_escape);
  EXPECT_ERROR(read_with_file({{"offset", "0"}, {"length", "16"}}, 1000), FormatError, ErrorCode::path_escape);
  for (const char* const fine : {"w.bin", "a/b/w.bin", "./w.bin", "..w", "a/..b/c", "w..bin", "a~"})
    EXPECT_EQ(read_with_file({{"location", fine}}, 16).weights, 1U) << fine;
}

TEST(OnnxData, RefusesOffsetsAndLengthsThatAreNoNumbers) {
  for (const char* const number :
       {"", "-1", "+1", " 1", "1 ", "0x10", "1e3", "nan", "18446744073709551616", "9223372036854775808", "one"}) {
    EXPECT_ERROR(read_with_file({{"location", "w"}, {"offset", number}}, 1000), FormatError, ErrorCode::format_error);
    EXPECT_ERROR(read_with_file({{"location", "w"}, {"length", number}}, 1000), FormatError, ErrorCode::format_error);
  }
}

TEST(OnnxData, RefusesKeysThatComeTwiceAndPassesOverUnknownOnes) {
  EXPECT_ERROR(read_with_file({{"location", "w"}, {"location", "w"}}, 1000), FormatError, ErrorCode::format_error);
  EXPECT_ERROR(read_with_file({{"location", "w"}, {"offset", "0"}, {"offset", "0"}}, 1000), FormatError, ErrorCode::format_error);
  EXPECT_ERROR(read_with_file({{"location", "w"}, {"length", "16"}, {"length", "16"}}, 1000), FormatError, ErrorCode::format_error);
  EXPECT_EQ(read_with_file({{"location", "w"}, {"checksum", "?"}, {"of the future", "?"}}, 1000).weights, 1U);
}

TEST(OnnxData, RefusesDataBeyondTheEndOfTheirFile) {
  const Entries all = {{"location", "w"}, {"offset", "4096"}, {"length", "16"}};
  EXPECT_EQ(read_with_file(all, 4112).weights, 1U);
  EXPECT_ERROR(read_with_file(all, 4111), FormatError, ErrorCode::file_truncated);
  EXPECT_ERROR(read_with_file(all, 16), FormatError, ErrorCode::file_truncated);
  EXPECT_ERROR(read_with_file(all, std::nullopt), FormatError, ErrorCode::file_truncated);
  EXPECT_ERROR(read_with_file({{"location", "w"}, {"offset", "9223372036854775807"}}, UINT64_MAX / 4), FormatError,
               ErrorCode::file_truncated);
  // Without a length, that of the shape.
  EXPECT_ERROR(read_with_file({{"location", "w"}}, 15), FormatError, ErrorCode::file_truncated);
  EXPECT_ERROR(read_with_file({{"location", "w"}, {"length", "1125899906842624"}}, 1000), FormatError, ErrorCode::size_mismatch);
}

TEST(OnnxData, RefusesExternalDataWhenNobodyAnswersForThem) {
  EXPECT_ERROR(read_onnx(sample_external_data(), {.bind = {{"N", 1}}}), FormatError, ErrorCode::path_escape);
  const auto answer = [](const std::string&) { return std::optional<std::uint64_t>(5120); };
  EXPECT_EQ(read_onnx(sample_external_data(), {.bind = {{"N", 1}}, .external_size = answer}).weight_bytes, 1024U);
}

}  // namespace
}  // namespace berth::testing
