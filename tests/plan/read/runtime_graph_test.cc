// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/runtime_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/random.h"
#include "berth/plan/read_graph.h"
#include "support/errors.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json node(const std::string& name, const Json& inputs, const std::string& function = "f", int outputs = 1) {
  if (function.empty()) return {{"op", "null"}, {"name", name}, {"inputs", inputs}};
  return {{"op", "tvm_op"},
          {"name", name},
          {"attrs",
           {{"num_outputs", std::to_string(outputs)},
            {"num_inputs", std::to_string(inputs.size())},
            {"flatten_data", "0"},
            {"func_name", function}}},
          {"inputs", inputs}};
}

// x (float32 [4]) and a weight; two layers, a reshape of the first, and a node with two outputs.
Json small() {
  return {{"nodes",
           {node("x", Json::array(), ""), node("w", Json::array(), ""), node("dense", {{0, 0, 0}, {1, 0, 0}}),
            node("flat", {{2, 0, 0}}, "__nop"), node("relu", {{3, 0, 0}}), node("split", {{4, 0, 0}}, "f", 2),
            node("add", {{5, 0, 0}, {5, 1, 0}})}},
          {"arg_nodes", {0, 1}},
          {"heads", {{6, 0, 0}}},
          {"attrs",
           {{"dltype", {"list_str", {"float32", "int8", "float32", "float32", "float32", "float16", "bool", "int64"}}},
            {"shape", {"list_shape", {{4}, {2, 3}, {2, 2}, {4}, {4}, {2}, {3}, Json::array()}}},
            {"storage_id", {"list_int", {0, 7, 1, 1, 2, 3, 4, 5}}},
            {"device_index", {"list_int", {1, 1, 1, 1, 1, 1, 1, 1}}}}},
          {"node_row_ptr", {0, 1, 2, 3, 4, 5, 7, 8}},
          {"metadata", {{"by", "a compiler"}, {"scale", 0.1}}}};
}

std::vector<std::int64_t> attr(const Json& file, const char* name) { return file.at("attrs").at(name).at(1); }

TEST(RuntimeGraph, IsReadAsTheRuntimeRunsIt) {
  const Graph graph = read_runtime_graph(small().dump());
  ASSERT_EQ(graph.nodes.size(), 4U);  // not the inputs, and not the reshape
  const auto bytes = [&](const char* name) { return graph.values[graph.find(name)].bytes; };
  EXPECT_EQ(bytes("x"), 16U);
  EXPECT_EQ(bytes("w"), 6U);
  EXPECT_EQ(bytes("split"), 4U);
  EXPECT_EQ(bytes("split:1"), 3U);
  EXPECT_EQ(bytes("add"), 8U);
  EXPECT_TRUE(graph.values[graph.find("x")].external);
  EXPECT_TRUE(graph.values[graph.find("w")].external);
  EXPECT_TRUE(graph.values[graph.find("add")].output);
  EXPECT_EQ(graph.nodes[1].name, "relu");
  EXPECT_THAT(graph.nodes[1].inputs, ElementsAre(graph.find("dense")));  // what was reshaped
  EXPECT_EQ(graph.values[graph.find("dense")].dtype, DType::f32);
  EXPECT_EQ(graph.devices, Graph().devices);
  EXPECT_EQ(read_graph(small().dump()), graph);  // detected
}

TEST(RuntimeGraph, GivesAnElementWholeBytes) {
  const std::pair<const char*, std::size_t> kTypes[] = {{"float64", 8},
                                                        {"bfloat16", 2},
                                                        {"uint1", 1},
                                                        {"int4", 1},
                                                        {"float32x4", 16},
                                                        {"int4x8", 4},
                                                        {"bool", 1},
                                                        {"boolx4", 1},
                                                        {"handle", 8},
                                                        {"", 8},
                                                        {"float", 4},
                                                        {"float8_e4m3fn", 1},
                                                        {"float8_e4m3fnx4", 4},
                                                        {"float4_e2m1fnx2", 1},
                                                        {"float8_e8m0fnux16", 16},
                                                        {"e4m3_float8", 1}};
  for (const auto& [type, bytes] : kTypes) {
    Json file = small();
    file["attrs"]["dltype"][1][6] = type;
    const Graph graph = read_runtime_graph(file.dump());
    EXPECT_EQ(graph.values[graph.find("split:1")].bytes, 3 * bytes) << type;
  }
  for (const char* type :
       {"32", "xyz8", "int8_nonsense", "bool8", "INT8", "float0", "float32x0", "float32x", "float32 ", "float9999", "bfloat", "float8_"}) {
    Json file = small();
    file["attrs"]["dltype"][1][6] = type;
    EXPECT_ERROR((void)read_runtime_graph(file.dump()), FormatError, ErrorCode::format_error);
  }
}

TEST(RuntimeGraph, KnowsMxnetsTypesAndDevices) {
  Json file = small();
  file["attrs"].erase("dltype");
  file["attrs"].erase("storage_id");
  file["attrs"]["dtype"] = {"list_int", {0, 5, 0, 0, 0, 2, -1, 6}};
  file["attrs"]["shape"][1][5] = {-1, 2};
  file["attrs"]["device_index"] = {"list_int", {1, 1, 1, 1, 1, 9, 2}};  // of each node
  const Graph graph = read_runtime_graph(file.dump());
  const auto value = [&](const char* name) { return graph.values[graph.find(name)]; };
  EXPECT_EQ(value("w").bytes, 6U);
  EXPECT_EQ(value("split").size_bytes(), std::nullopt);    // its shape is not known
  EXPECT_EQ(value("split:1").size_bytes(), std::nullopt);  // its type is not known
  EXPECT_EQ(value("add").size_bytes(), std::nullopt);      // MXNet's shape [] is not known
  EXPECT_THAT(graph.devices, ElementsAre("cpu:0", "device 9", "cuda:0"));
  EXPECT_EQ(value("split:1").device, 1U);
  EXPECT_EQ(value("add").device, 2U);
}

TEST(RuntimeGraph, TakesAnExtentOfNothingForUnknownInMxnetsFormAlone) {
  Json file = small();
  file["attrs"]["shape"][1][5] = {0, 2};
  const auto size = [&] {
    const Graph graph = read_runtime_graph(file.dump());
    return graph.values[graph.find("split")].size_bytes();
  };
  EXPECT_EQ(size(), 0U);
  file["attrs"].erase("dltype");
  file["attrs"]["dtype"] = {"list_int", {0, 5, 0, 0, 0, 2, 7, 6}};
  EXPECT_EQ(size(), std::nullopt);
}

TEST(RuntimeGraph, SharesNoStorageBetweenScopes) {
  Json file = small();
  for (const std::size_t entry : {0U, 2U, 3U, 4U, 5U, 6U, 7U}) {
    file["attrs"]["dltype"][1][entry] = "float32";
    file["attrs"]["shape"][1][entry] = {4};
  }
  file["attrs"]["storage_scope"] = {"list_str",
                                    {"global", "global", "global", "global", "global.texture", "global", "global", "global.texture"}};
  const std::string bytes = file.dump();
  const Graph graph = read_runtime_graph(bytes);
  EXPECT_THAT(graph.devices, ElementsAre("cpu:0", "cpu:0 global.texture"));
  const std::vector<std::int64_t> ids = attr(Json::parse(with_storage_ids(bytes, berth::plan(graph, {.strategy = "slots"}))), "storage_id");
  EXPECT_NE(ids[7], ids[2]);
  EXPECT_EQ(ids[7], ids[4]) << "those of one scope do share";
}

TEST(RuntimeGraph, KeepsWaitsWithoutData) {
  Json file = small();
  file["nodes"][6]["control_deps"] = {2, 3, 0};
  const Graph graph = read_runtime_graph(file.dump());
  ASSERT_EQ(graph.nodes[0].outputs.size(), 2U);
  EXPECT_EQ(graph.values[graph.nodes[0].outputs[1]].bytes, 0U);
  EXPECT_EQ(graph.nodes[3].inputs.size(), 4U);  // twice for the node and for what it reshapes, and not for the input
}

TEST(RuntimeGraph, ComesOutWithTheStorageOfThePlan) {
  const std::string bytes = small().dump();
  const Plan made = berth::plan(read_runtime_graph(bytes), {.strategy = "slots"});
  Json planned = Json::parse(with_storage_ids(bytes, made));
  const std::vector<std::int64_t> ids = attr(planned, "storage_id");
  EXPECT_EQ(ids[0], 0);  // weights may be linked by their numbers
  EXPECT_EQ(ids[1], 7);
  EXPECT_EQ(ids[2], ids[3]);  // the reshape writes nothing
  EXPECT_LT(std::ranges::count(ids, ids[2]), std::ssize(ids));
  planned["attrs"]["storage_id"] = small()["attrs"]["storage_id"];
  EXPECT_EQ(planned, small());  // all else, and its order
}

// ---- A runtime, and what it would see.

// Runs a file as TVM's graph executor does: each storage as large as its largest entry, entries at its start.
class Runtime {
 public:
  enum class By : bool { storage, offset };

  Runtime(const Json& file, By by) : file_(file), by_(by) {
    for (std::size_t entry = 0; entry < entries(); ++entry) {
      std::vector<std::uint32_t>& memory = pool_[place(entry).first];
      memory.resize(std::max(memory.size(), place(entry).second + bytes(entry)), UINT32_MAX);
    }
  }

  // Whether nobody reads what another has overwritten.
  ::testing::AssertionResult run() {
    source_.resize(entries());
    std::iota(source_.begin(), source_.end(), 0U);
    const Json& nodes = file_.at("nodes");
    for (std::size_t n = 0; n < nodes.size(); ++n)
      if (nodes[n].at("op") == "null") write_outputs(n);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].at("op") == "null") continue;
      if (nodes[n].at("attrs").at("func_name") == "__nop") {
        source_[row(n)] = source_[entry_of(nodes[n].at("inputs")[0])];
        continue;
      }
      for (const Json& input : nodes[n].at("inputs"))
        if (auto good = reads(entry_of(input)); !good) return good << " by node " << n;
      write_outputs(n);
    }
    for (const Json& head : file_.at("heads"))
      if (auto good = reads(entry_of(head)); !good) return good << " by the caller";
    return ::testing::AssertionSuccess();
  }

  std::size_t storage_bytes() const {
    return std::accumulate(pool_.begin(), pool_.end(), std::size_t{0},
                           [](std::size_t sum, const auto& one) { return sum + one.second.size(); });
  }

 private:
  std::size_t row(std::size_t n) const { return file_.at("node_row_ptr")[n]; }
  std::size_t entries() const { return file_.at("node_row_ptr").back(); }
  std::size_t entry_of(const Json& mention) const { return row(mention[0]) + mention[1].get<std::size_t>(); }
  std::size_t bytes(std::size_t entry) const { return file_.at("attrs").at("shape")[1][entry][0]; }  // of int8

  // Its storage, and where it begins in it.
  std::pair<std::int64_t, std::size_t> place(std::size_t entry) const {
    const Json& attrs = file_.at("attrs");
    const std::int64_t id = attrs.at("storage_id")[1][entry];
    if (by_ == By::storage) return {id, 0};
    const std::int64_t offset = attrs.at("storage_offset")[1][entry];
    const std::int64_t device = attrs.at("device_index")[1][entry];  // each has an arena: not the number of a storage
    return offset < 0 ? std::pair(id, std::size_t{0}) : std::pair(-device, static_cast<std::size_t>(offset));
  }

  void write_outputs(std::size_t n) {
    for (std::size_t entry = row(n); entry < row(n + 1); ++entry) {
      const auto [storage, first] = place(entry);
      std::fill_n(pool_[storage].begin() + static_cast<std::ptrdiff_t>(first), bytes(entry), static_cast<std::uint32_t>(entry));
    }
  }

  ::testing::AssertionResult reads(std::size_t entry) {
    const auto [storage, first] = place(entry);
    for (std::size_t i = 0; i < bytes(entry); ++i)
      if (pool_[storage].at(first + i) != source_[entry])
        return ::testing::AssertionFailure() << "entry " << entry << " of storage " << storage << " was overwritten by entry "
                                             << pool_[storage][first + i] << " before it was read";
    return ::testing::AssertionSuccess();
  }

  Json file_;
  By by_;
  std::map<std::int64_t, std::vector<std::uint32_t>> pool_;  // who wrote each byte last
  std::vector<std::uint32_t> source_;                        // of each entry: who writes its bytes
};

Json random_file(Random& random) {
  Json file = {
      {"nodes", Json::array()}, {"arg_nodes", Json::array()}, {"heads", Json::array()}, {"attrs", Json::object()}, {"node_row_ptr", {0}}};
  Json shapes = Json::array();
  Json devices = Json::array();
  std::vector<Json> written;  // mentions
  const auto add_entry = [&](std::size_t n, std::uint64_t bytes, std::uint64_t device) {
    written.push_back({n, shapes.size() - file["node_row_ptr"][n].get<std::size_t>(), 0});
    shapes.push_back({bytes});
    devices.push_back(device);
  };
  const std::size_t inputs = 1 + random.below(3);
  const std::size_t nodes = inputs + 1 + random.below(20);
  for (std::size_t n = 0; n < nodes; ++n) {
    const std::string name = "n" + std::to_string(n);
    if (n < inputs) {
      file["nodes"].push_back(node(name, Json::array(), ""));
      file["arg_nodes"].push_back(n);
      add_entry(n, random.below(40), 1);
    } else if (random.one_in(5)) {
      const std::size_t input = random.below(written.size());
      file["nodes"].push_back(node(name, Json::array({written[input]}), "__nop"));
      add_entry(n, shapes[input][0], devices[input]);
    } else {
      Json reads = Json::array();
      for (std::uint64_t left = 1 + random.below(3); left > 0; --left)
        reads.push_back(written[written.size() - 1 - random.below(std::min<std::size_t>(written.size(), 6))]);
      const std::uint64_t outputs = 1 + random.below(2);
      file["nodes"].push_back(node(name, reads, "f", static_cast<int>(outputs)));
      for (std::uint64_t i = 0; i < outputs; ++i) add_entry(n, random.below(40), 1 + random.below(2));
    }
    file["node_row_ptr"].push_back(shapes.size());
  }
  for (std::uint64_t left = 1 + random.below(3); left > 0; --left) file["heads"].push_back(written[random.below(written.size())]);
  std::vector<std::string> types(shapes.size(), "int8");
  std::vector<std::size_t> ids(shapes.size());
  std::iota(ids.begin(), ids.end(), 0U);
  file["attrs"] = {{"dltype", {"list_str", types}}, {"shape", {"list_shape", shapes}}, {"device_index", {"list_int", devices}}};
  if (random.one_in(2)) file["attrs"]["storage_id"] = {"list_int", ids};
  return file;
}

TEST(RuntimeGraph, RunsWithoutAByteOverwrittenEarly) {
  std::size_t before = 0;
  std::size_t after = 0;
  const std::uint64_t count = scaled(5000);
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    Random random(seed);
    const std::string bytes = random_file(random).dump();
    for (const char* strategy : {"slots", "offsets"}) {
      const Plan made = berth::plan(read_runtime_graph(bytes), {.strategy = strategy});
      const Json planned = Json::parse(with_storage_ids(bytes, made));
      Runtime by_storage(planned, Runtime::By::storage);
      ASSERT_TRUE(by_storage.run()) << "seed " << seed << ", " << strategy;
      if (strategy == std::string_view("offsets")) {
        ASSERT_TRUE(Runtime(planned, Runtime::By::offset).run()) << "seed " << seed << ", by offsets";
        continue;
      }
      after += by_storage.storage_bytes();
      before += made.naive_bytes();
      // Storages on two devices are refused by the runtime.
      std::map<std::int64_t, std::int64_t> devices;
      for (std::size_t entry = 0; entry < attr(planned, "storage_id").size(); ++entry) {
        const std::int64_t device = attr(planned, "device_index")[entry];
        ASSERT_EQ(devices.emplace(attr(planned, "storage_id")[entry], device).first->second, device) << "seed " << seed;
      }
    }
  }
  EXPECT_LT(after, before);  // the inputs are in it too
}

// ---- Files that lie.

using Change = void (*)(Json&);

TEST(RuntimeGraph, RefusesWhatContradictsItself) {
  const struct {
    Change change;
    ErrorCode code;
    const char* at;
  } kLies[] = {
      {[](Json& file) { file.erase("arg_nodes"); }, ErrorCode::format_error, "arg_nodes"},
      {[](Json& file) { file["attrs"].erase("shape"); }, ErrorCode::format_error, "attrs.shape"},
      {[](Json& file) { file["attrs"].erase("dltype"); }, ErrorCode::format_error, "attrs.dltype"},
      {[](Json& file) {
         file["node_row_ptr"] = {0, 1};
       },
       ErrorCode::format_error, "node_row_ptr"},
      {[](Json& file) { file["node_row_ptr"][0] = 1; }, ErrorCode::format_error, "node_row_ptr[0]"},
      {[](Json& file) { file["node_row_ptr"][3] = 1; }, ErrorCode::format_error, "node_row_ptr[3]"},
      {[](Json& file) { file["node_row_ptr"][7] = 4000000000; }, ErrorCode::format_error, "attrs.shape[1]"},
      {[](Json& file) { file["attrs"]["shape"][1].push_back({1}); }, ErrorCode::format_error, "attrs.shape[1]"},
      {[](Json& file) { file["attrs"]["storage_id"][1].erase(0); }, ErrorCode::format_error, "attrs.storage_id[1]"},
      {[](Json& file) { file["attrs"]["storage_id"][0] = "list_str"; }, ErrorCode::format_error, "attrs.storage_id[0]"},
      {[](Json& file) { file["attrs"]["storage_id"].push_back(1); }, ErrorCode::format_error, "attrs.storage_id[2]"},
      {[](Json& file) { file["attrs"]["storage_id"].erase(1); }, ErrorCode::format_error, "attrs.storage_id"},
      {[](Json& file) {
         file["attrs"]["device_index"][1] = {1, 1};
       },
       ErrorCode::format_error, "attrs.device_index[1]"},
      {[](Json& file) { file["attrs"]["dltype"][1][2] = "flat"; }, ErrorCode::format_error, "attrs.dltype[1][2]"},
      {[](Json& file) { file["attrs"]["dltype"][1][2] = "float0"; }, ErrorCode::format_error, "attrs.dltype[1][2]"},
      {[](Json& file) {
         file["attrs"]["shape"][1][4] = {1L << 62, 4};
       },
       ErrorCode::size_overflow, "attrs.dltype[1][4]"},
      {[](Json& file) { file["attrs"]["shape"][1][3] = {5}; }, ErrorCode::format_error, "nodes[3]"},  // of the reshape
      {[](Json& file) { file["nodes"][3]["inputs"] = Json::array(); }, ErrorCode::format_error, "nodes[3]"},
      {[](Json& file) {
         file["nodes"][2]["inputs"][0] = {4, 0, 0};
       },
       ErrorCode::graph_cycle, "nodes[2].inputs[0]"},
      {[](Json& file) {
         file["nodes"][2]["inputs"][0] = {2, 0, 0};
       },
       ErrorCode::graph_cycle, "nodes[2].inputs[0]"},
      {[](Json& file) {
         file["nodes"][2]["inputs"][0] = {7, 0, 0};
       },
       ErrorCode::out_of_bounds, "nodes[2].inputs[0]"},
      {[](Json& file) {
         file["nodes"][4]["inputs"][0] = {2, 1, 0};
       },
       ErrorCode::out_of_bounds, "nodes[4].inputs[0]"},
      {[](Json& file) { file["nodes"][4]["inputs"][0] = {2}; }, ErrorCode::format_error, "nodes[4].inputs[0]"},
      {[](Json& file) {
         file["nodes"][4]["inputs"][0] = {2, 0, 0, 0};
       },
       ErrorCode::format_error, "nodes[4].inputs[0][3]"},
      {[](Json& file) { file["nodes"][4]["control_deps"] = {4}; }, ErrorCode::graph_cycle, "nodes[4].control_deps[0]"},
      {[](Json& file) { file["nodes"][4].erase("op"); }, ErrorCode::format_error, "nodes[4].op"},
      {[](Json& file) { file["arg_nodes"][0] = 2; }, ErrorCode::format_error, "arg_nodes[0]"},
      {[](Json& file) { file["arg_nodes"][0] = 9; }, ErrorCode::format_error, "arg_nodes[0]"},
      {[](Json& file) {
         file["heads"][0] = {9, 0};
       },
       ErrorCode::out_of_bounds, "heads[0]"},
  };
  for (const auto& lie : kLies) {
    Json file = small();
    lie.change(file);
    try {
      (void)read_runtime_graph(file.dump());
      ADD_FAILURE() << "accepted, with a lie at " << lie.at;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), lie.code) << error.what();
      EXPECT_THAT(to_json(error), HasSubstr("\"" + std::string(lie.at) + "\"")) << error.what();
    }
  }
}

TEST(RuntimeGraph, RefusesEveryCutFile) {
  const std::string bytes = small().dump();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_ERROR((void)read_runtime_graph(bytes.substr(0, length)), FormatError, ErrorCode::format_error);
}

TEST(RuntimeGraph, TakesNoPlanOfAnotherGraphOrOrder) {
  const std::string bytes = small().dump();
  const Graph graph = read_runtime_graph(bytes);
  Graph other = graph;
  other.values[0].bytes = 99;
  other.values[0].shape.reset();
  EXPECT_ERROR((void)with_storage_ids(bytes, berth::plan(other)), ArgumentError, ErrorCode::plan_invalid);
  EXPECT_ERROR((void)with_storage_ids(bytes, berth::plan(graph, {.capacity_bytes = 1})), ArgumentError, ErrorCode::plan_invalid);
}

TEST(RuntimeGraph, SaysThatAnOffsetDoesNotFit) {
  Json file = small();
  file["attrs"]["shape"][1][4] = {1L << 30};  // relu: four bytes each
  const std::string bytes = file.dump();
  const Graph graph = read_runtime_graph(bytes);
  EXPECT_NO_THROW((void)with_storage_ids(bytes, berth::plan(graph, {.strategy = "slots"})));
  EXPECT_ERROR((void)with_storage_ids(bytes, berth::plan(graph, {.strategy = "offsets", .alignment = std::size_t{1} << 32})), ArgumentError,
               ErrorCode::limit_exceeded);
}

}  // namespace
}  // namespace berth::testing
