// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <protozero/pbf_writer.hpp>

#include "support/errors.h"
#include "support/onnx_writer.h"

// What protobuf allows, and what it does not.
namespace berth::testing {
namespace {

std::string small_model() {
  GraphWriter graph;
  graph.input("x", kFloat, {2, 3}).node("Relu", {"x"}, {"y"}).output("y", kFloat);
  return graph.model();
}

// A field of type bytes: the tag, a length of one byte, and the bytes.
std::string field(unsigned number, std::string_view bytes) {
  std::string out;
  protozero::pbf_writer(out).add_bytes(number, bytes.data(), bytes.size());
  return out;
}

void expect_refused(const std::string& bytes, std::size_t offset) {
  EXPECT_ERROR(read_onnx(bytes, {}, "bad.onnx"), FormatError, ErrorCode::format_error);
  try {
    read_onnx(bytes, {}, "bad.onnx");
  } catch (const FormatError& error) {
    EXPECT_EQ(error.fact("offset"), std::to_string(offset)) << error.what();
    EXPECT_NE(std::string(error.what()).find("bad.onnx"), std::string::npos) << error.what();
  }
}

TEST(OnnxWire, RefusesBytesThatAreNoModel) {
  expect_refused("", 0);
  expect_refused(std::string(64, '\0'), 0);
  EXPECT_ERROR(read_onnx("this is some text, and no model at all"), FormatError, ErrorCode::format_error);
  EXPECT_ERROR(read_onnx("{\"berth\": \"graph\"}"), FormatError, ErrorCode::format_error);
}

TEST(OnnxWire, RefusesFieldsThatReachBeyondTheEnd) {
  const std::string model = small_model();
  const std::size_t end = model.size();
  expect_refused(model + "\x3a\x7f", end);
  expect_refused(model + "\x3a", end);
  expect_refused(model + "\x09 1234", end);  // 8 bytes, of which 5 are present
  expect_refused(model + "\x0d 12", end);
  const std::size_t before_opset = model.size() - 6;  // a message may end there
  for (std::size_t i = 0; i < model.size(); ++i) {
    if (i == before_opset) continue;
    EXPECT_THROW(read_onnx(model.substr(0, i)), FormatError) << "cut off at " << i;
  }
}

// Protozero truncates lengths and tags to 32 bits, which would turn them into other fields.
TEST(OnnxWire, RefusesLengthsAndTagsOfMoreThan32Bits) {
  const std::string model = small_model();
  expect_refused(model + std::string("\x12\x80\x80\x80\x80\x10", 6), model.size());  // a length of 2^32
  expect_refused(model + std::string("\x92\x80\x80\x80\x80\x01\x00", 7), model.size());
}

TEST(OnnxWire, RefusesNumbersOfMoreThanTenBytes) {
  const std::string model = small_model();
  expect_refused(model + "\x08" + std::string(10, '\xff') + "\x01", model.size());
  expect_refused(model + std::string(12, '\xff'), model.size());
}

TEST(OnnxWire, RefusesWireTypesThatAreWrong) {
  const std::string model = small_model();
  expect_refused(model + "\x0a\x01z", model.size());                     // ir_version as bytes
  expect_refused(model + "\x38\x01", model.size());                      // the graph as a number
  expect_refused(model + "\x0f", model.size());                          // wire type 7
  expect_refused(model + "\x0e", model.size());                          // wire type 6
  expect_refused(model + "\x02\x01z", model.size());                     // field 0
  expect_refused(model + "\x14", model.size());                          // a group that ends without a start
  expect_refused(model_message(field(5, field(1, "\xff")), 17, 8), 13);  // truncated packed dims
}

TEST(OnnxWire, RefusesMoreThanTwoGibibytes) {
  const std::size_t bytes = (std::size_t{1} << 31) + 1;
  void* const pages = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  EXPECT_ERROR(read_onnx({static_cast<const char*>(pages), bytes}), FormatError, ErrorCode::format_error);
  munmap(pages, bytes);
}

// Field 50 as a group: its start is (50 << 3) + 3 = 403, its end 404.
TEST(OnnxWire, SkipsUnknownGroupsToADepth) {
  const auto nested = [](int depth) {
    std::string out;
    for (int i = 0; i < depth; ++i) out += "\x93\x03";
    out += std::string("\x08\x01\x12\x02zz\x0d 123\x11 1234567", 20);  // one of each wire type
    for (int i = 0; i < depth; ++i) out += "\x94\x03";
    return out;
  };
  EXPECT_EQ(read_onnx(nested(1) + small_model()).graph.nodes.size(), 1U);
  EXPECT_EQ(read_onnx(small_model() + nested(99)).graph.nodes.size(), 1U);
  EXPECT_ERROR(read_onnx(small_model() + nested(100)), FormatError, ErrorCode::limit_exceeded);
  EXPECT_ERROR(read_onnx(small_model() + nested(100'000)), FormatError, ErrorCode::limit_exceeded);
  EXPECT_ERROR(read_onnx(small_model() + "\x93\x03"), FormatError, ErrorCode::format_error);
  // Another group ends.
  EXPECT_ERROR(read_onnx(small_model() + "\x93\x03\x9c\x03"), FormatError, ErrorCode::format_error);
  EXPECT_ERROR(read_onnx(small_model() + "\x93\x03\x12\x7f"), FormatError, ErrorCode::format_error);
}

TEST(OnnxWire, RefusesSubgraphsNestedTooDeep) {
  const auto nested = [](int depth) {
    GraphWriter inner("innermost");
    inner.node("Neg", {"x"}, {"deepest"}).output("deepest", kFloat);
    std::string graph = inner.graph();
    for (int i = 0; i < depth; ++i) {
      GraphWriter around;
      const std::string name = "y" + std::to_string(i);
      if (i + 1 == depth) around.input("x", kFloat, {2}).input("c", kBool, {});
      around.node("If", {"c"}, {name}, {subgraph("then_branch", graph), subgraph("else_branch", inner.graph())}).output(name, kFloat);
      graph = around.graph();
    }
    return model_message(graph, 17, 8);
  };
  EXPECT_EQ(shape_of(read_onnx(nested(1)), "y0"), "f32 [2]");
  EXPECT_EQ(shape_of(read_onnx(nested(20)), "y19"), "f32 [2]");
  EXPECT_ERROR(read_onnx(nested(40)), FormatError, ErrorCode::limit_exceeded);
}

// ---- What is allowed.

TEST(OnnxWire, ReadsRepeatedNumbersPackedAndNot) {
  std::string packed;
  std::string loose;
  const std::vector<std::int64_t> dims = {2, 3};
  const std::vector<std::int64_t> data = {1, -1, 3, 4, 5, 6};
  protozero::pbf_writer(packed).add_packed_int64(1, dims.begin(), dims.end());
  protozero::pbf_writer(packed).add_packed_int64(7, data.begin(), data.end());
  for (const std::int64_t dim : dims) protozero::pbf_writer(loose).add_int64(1, dim);
  for (const std::int64_t value : data) protozero::pbf_writer(loose).add_int64(7, value);
  for (const std::string& tensor_fields : {packed, loose}) {
    std::string tensor_bytes = tensor_fields;
    protozero::pbf_writer(tensor_bytes).add_int64(2, kInt64);
    GraphWriter graph;
    graph.initializer(tensor_bytes + field(8, "w")).input("x", kInt64, {2, 3});
    graph.node("Add", {"x", "w"}, {"y"}).output("y", kInt64);
    EXPECT_EQ(shape_of(read_onnx(graph.model()), "w"), "i64 [2, 3]");
  }
}

TEST(OnnxWire, TakesFieldsInAnyOrderAndTheLastOfASingularOne) {
  GraphWriter graph;
  graph.output("y", kFloat).node("Relu", {"x"}, {"y"}).input("x", kFloat, {2, 3}).field(2, "first").field(2, "last");
  std::string model = field(8, std::string("\x10\x05", 2)) + graph.model(17, 3);
  protozero::pbf_writer(model).add_int64(1, 9);
  const OnnxModel read = read_onnx(model);
  EXPECT_EQ(read.graph.name, "last");
  EXPECT_EQ(read.ir_version, 9);
  EXPECT_EQ(read.opset, 17);
  EXPECT_EQ(shape_of(read, "y"), "f32 [2, 3]");
}

// Messages that come in parts are merged.
TEST(OnnxWire, MergesAGraphThatComesTwice) {
  GraphWriter first;
  first.input("x", kFloat, {2, 3}).node("Relu", {"x"}, {"y"});
  GraphWriter second;
  second.node("Neg", {"y"}, {"z"}).output("z", kFloat);
  EXPECT_EQ(read_onnx(first.model() + second.model()).graph.nodes.size(), 2U);
}

TEST(OnnxWire, PassesOverUnknownFieldsOfEveryWireType) {
  std::string model = small_model();
  protozero::pbf_writer writer(model);
  writer.add_int64(200, -1);
  writer.add_fixed32(201, 7);
  writer.add_fixed64(202, 7);
  writer.add_string(203, "whatever");
  EXPECT_EQ(read_onnx(model).graph.nodes.size(), 1U);
}

TEST(OnnxWire, AcceptsVersionsThatItDoesNotKnow) {
  GraphWriter graph;
  graph.input("x", kFloat, {2, 3}).node("OperatorOfTheFuture", {"x"}, {"y"}).node("Relu", {"y"}, {"z"}).output("z", kFloat);
  graph.value_info("y", kFloat, {2, 3});
  const OnnxModel read = read_onnx(graph.model(1000, 99));
  EXPECT_EQ(read.opset, 1000);
  EXPECT_EQ(read.ir_version, 99);
  EXPECT_EQ(shape_of(read, "z"), "f32 [2, 3]");
  EXPECT_TRUE(node_of(read, "OperatorOfTheFuture").inplace.empty()) << "an operator that is not in the table shares nothing";
  EXPECT_EQ(node_of(read, "Relu").inplace.size(), 1U);
  EXPECT_EQ(read_onnx(field(7, graph.graph())).opset, 0) << "a file that imports no operators";
}

}  // namespace
}  // namespace berth::testing
