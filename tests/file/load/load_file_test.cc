// SPDX-License-Identifier: Apache-2.0
// Model files loaded through the public functions.
#include <gtest/gtest.h>

#include <chrono>

#include "file/file_support.h"
#include "file/load/load_support.h"
#include "support/errors.h"

namespace berth::testing {
namespace {

std::vector<NamedTensor> sample_tensors() {
  return {{"embed", full({300, 200}, 1.25F, DType::f32, "cpu")},
          {"norm", full({200}, 3, DType::bf16, "cpu")},
          {"ids", full({7, 5}, 12, DType::i64, "cpu")},
          {"empty", zeros({0, 4}, DType::f16, "cpu")},
          {"scalar", full({}, 2.5, DType::f64, "cpu")}};
}

std::string sample_model(const Folder& folder, const std::string& name = "model.safetensors") {
  save_safetensors(folder / name, sample_tensors());
  return folder / name;
}

TEST(LoadFile, BringsEveryTensorOfASafetensorsFile) {
  const Folder folder;
  const std::string path = sample_model(folder);
  for (const char* device : {"cpu", "pinned", "shared", "sim:0"}) {
    const LoadedTensors loaded = berth::load(path, device, {.dtype = DType::f16});
    ASSERT_EQ(loaded.size(), 5U);
    for (const NamedTensor& tensor : sample_tensors()) {
      const DType dtype = tensor.storage.dtype() == DType::i64 ? DType::i64 : DType::f16;
      EXPECT_TRUE(equal(loaded[tensor.name], tensor.storage.to(dtype))) << tensor.name << " on " << device;
      EXPECT_EQ(loaded[tensor.name].device(), Device(device));
    }
  }
}

TEST(LoadFile, MapsWhatItCanWhenAsked) {
  const Folder folder;
  const std::string path = sample_model(folder);
  const LoadedTensors loaded = berth::load(path, "cpu", {.mode = LoadMode::map, .dtype = DType::f32});
  EXPECT_EQ(loaded.report().mode, LoadMode::map);
  EXPECT_EQ(loaded.report().mapped, 2U) << "embed, ids; the others become f32";
  EXPECT_TRUE(loaded["embed"].is_mapped());
  EXPECT_TRUE(loaded["embed"].is_read_only());
  EXPECT_FALSE(loaded["norm"].is_mapped());
  EXPECT_TRUE(equal(loaded["embed"], sample_tensors()[0].storage));
  EXPECT_TRUE(equal(loaded["norm"], sample_tensors()[1].storage.to(DType::f32)));
  // A file whose data begin at an odd offset: a tensor that cannot be mapped is read.
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  const std::string odd = folder.write("odd", safetensors_bytes(header + std::string(header.size() % 2, ' ') + " ", 11));
  const LoadedTensors both = berth::load(odd, "cpu", {.mode = LoadMode::map});
  EXPECT_EQ(both.report().mapped, 1U);
  EXPECT_FALSE(both["a"].is_mapped());
  EXPECT_TRUE(both["b"].is_mapped());
  EXPECT_TRUE(equal(both["a"].reinterpret(DType::u8), from_data({0, 1, 2, 3, 4, 5, 6, 7}, {8}, "cpu", DType::u8)));
}

TEST(LoadFile, BringsAModelOfSeveralFiles) {
  const Folder folder;
  save_safetensors(folder / "a.safetensors", {{"x", full({1000}, 1, DType::f32, "cpu")}});
  save_safetensors(folder / "b.safetensors", {{"y", full({2000}, 2, DType::f32, "cpu")}, {"z", full({3}, 3, DType::u8, "cpu")}});
  const std::string index =
      folder.write("model.safetensors.index.json",
                   R"({"metadata":{"total_size":12003},"weight_map":{"x":"a.safetensors","y":"b.safetensors","z":"b.safetensors"}})");
  for (const LoadMode mode : {LoadMode::read, LoadMode::direct, LoadMode::map}) {
    const LoadedTensors loaded = berth::load(index, "cpu", {.mode = mode});
    EXPECT_TRUE(equal(loaded["x"], full({1000}, 1, DType::f32, "cpu")));
    EXPECT_TRUE(equal(loaded["y"], full({2000}, 2, DType::f32, "cpu")));
    EXPECT_TRUE(equal(loaded["z"], full({3}, 3, DType::u8, "cpu")));
  }
}

TEST(LoadFile, BringsArraysOfNumPyInBothOrders) {
  const Folder folder;
  const Storage rows = from_data({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {2, 3}, "cpu");
  const Storage columns = rows.transpose(0, 1);
  save_npy(folder / "rows.npy", rows);
  save_npy(folder / "columns.npy", columns);
  save_npz(folder / "both.npz", {{"rows", rows}, {"columns", columns}});
  for (const char* device : {"cpu", "sim:0"}) {
    for (const LoadMode mode : {LoadMode::automatic, LoadMode::map}) {
      const LoadOptions options{.mode = mode};
      EXPECT_TRUE(equal(berth::load(folder / "rows.npy", device, options)[""], rows)) << device;
      EXPECT_TRUE(equal(berth::load(folder / "columns.npy", device, options)[""], columns)) << device;
      const LoadedTensors both = berth::load(folder / "both.npz", device, options);
      EXPECT_TRUE(equal(both["rows"], rows)) << device;
      EXPECT_TRUE(equal(both["columns"], columns)) << device;
      EXPECT_EQ(both["columns"].strides(), columns.strides()) << "nothing was turned around";
    }
  }
  EXPECT_TRUE(equal(berth::load(open_npz(folder / "both.npz"), "cpu", {.dtype = DType::f64})["columns"], columns.to(DType::f64)));
}

TEST(LoadFile, GivesTheBytesOfDTypesThatBerthLacks) {
  const Folder folder;
  const std::string header = R"({"s":{"dtype":"F8_E8M0","shape":[2,3],"data_offsets":[0,6]}})";
  const std::string path = folder.write("scales", safetensors_bytes(header, 6));
  for (const LoadMode mode : {LoadMode::read, LoadMode::map}) {
    const LoadedTensors loaded = berth::load(path, "cpu", {.mode = mode, .dtype = DType::f32});
    EXPECT_TRUE(equal(loaded["s"], from_data({0, 1, 2, 3, 4, 5}, {6}, "cpu", DType::u8)));
  }
}

TEST(LoadFile, FindsOutThatTheFileWasWrittenMeanwhile) {
  const Folder folder;
  for (const char* device : {"cpu", "sim:0"}) {
    const std::string path = sample_model(folder);
    const auto write = [&](const LoadProgress&) {
      std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(-1, std::ios::end).put('x');
      std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
      return true;
    };
    EXPECT_ERROR(berth::load(path, device, {.progress = write}), FormatError, ErrorCode::file_changed);
    const auto cut = [&](const LoadProgress&) { return std::filesystem::resize_file(path, 5000), true; };
    EXPECT_ERROR(berth::load(path, device, {.progress = cut}), FormatError, ErrorCode::file_truncated);
  }
}

TEST(LoadFile, KeepsTheBytesOfAFileThatWasReplacedMeanwhile) {
  const Folder folder;
  const std::string path = sample_model(folder);
  const SafetensorsFile file = open_safetensors(path);
  save_safetensors(path, {{"other", zeros({5}, DType::u8, "cpu")}});
  const LoadedTensors loaded = berth::load(file, "cpu");
  EXPECT_TRUE(equal(loaded["embed"], sample_tensors()[0].storage));
  EXPECT_EQ(berth::load(path, "cpu").size(), 1U);
}

}  // namespace
}  // namespace berth::testing
