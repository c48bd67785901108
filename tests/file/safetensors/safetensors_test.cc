// SPDX-License-Identifier: Apache-2.0
#include "berth/file/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "file/bad_files.h"
#include "file/file_support.h"
#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

const char kTwo[] = R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"U8","shape":[4],"data_offsets":[24,28]}})";

// Its data begins at a multiple of 8.
std::string two_tensors() {
  std::string header = kTwo;
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return safetensors_bytes(header, 28);
}

TEST(Safetensors, OpensWithoutCopying) {
  const Folder folder;
  const SafetensorsFile file = open_safetensors(folder.write("m.safetensors", two_tensors()));
  ASSERT_EQ(file.size(), 2U);
  EXPECT_EQ(file.tensor_bytes(), 28U);
  const TensorEntry& a = file.entries()[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.dtype, DType::f32);
  EXPECT_EQ(a.shape, Shape({2, 3}));
  EXPECT_EQ(a.file_offset, file.files()[0].data_offset);
  EXPECT_EQ(a.size_bytes, 24U);
  const Storage x = file["a"];
  EXPECT_TRUE(x.is_mapped() && x.is_read_only() && x.is_contiguous());
  EXPECT_EQ(x.buffer().owner(), Owner::file);
  EXPECT_TRUE(file["b"].is_view_of(x)) << "one mapping for all";
  EXPECT_EQ(file["b"].item<std::uint8_t>({3}), 27);
  EXPECT_EQ(mapped_path(x), folder / "m.safetensors");
  EXPECT_EQ(file.state(), FileState::current);
}

TEST(Safetensors, StoragesOutliveTheFileAndItsName) {
  const Folder folder;
  Storage b;
  {
    const SafetensorsFile file = open_safetensors(folder.write("m.safetensors", two_tensors()));
    b = file["b"];
  }
  std::filesystem::remove(folder / "m.safetensors");
  EXPECT_EQ(b.item<std::uint8_t>({0}), 24);
  EXPECT_EQ(mapped_state(b), FileState::replaced);
  EXPECT_EQ(b.clone().item<std::uint8_t>({3}), 27);
}

TEST(Safetensors, WritingThroughAMappedTensorIsAnError) {
  const Folder folder;
  const Storage a = open_safetensors(folder.write("m.safetensors", two_tensors()))["a"];
  EXPECT_ERROR(a.fill(0), AccessError, ErrorCode::read_only);
  EXPECT_ERROR((void)a.data<float>(), AccessError, ErrorCode::read_only);
  EXPECT_ERROR(a.copy_from(a.clone()), AccessError, ErrorCode::read_only);
}

TEST(Safetensors, ATensorThatIsNotAlignedIsReadAndNotMapped) {
  const Folder folder;
  std::string header = R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"y":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})";
  const SafetensorsFile file = open_safetensors(folder.write("odd.safetensors", safetensors_bytes(header, 9)));
  const Storage y = file["y"];
  EXPECT_FALSE(y.is_mapped());
  EXPECT_TRUE(y.is_read_only());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(y.data_ptr()) % 4, 0U);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(y.item<float>({0})), 0x04030201U);
  EXPECT_TRUE(file.bytes("y").is_mapped()) << "its bytes need no alignment";
  EXPECT_EQ(file.bytes("y").item<std::uint8_t>({7}), 8);
}

TEST(Safetensors, ReadsOntoAnyDevice) {
  const Folder folder;
  const SafetensorsFile file = open_safetensors(folder.write("m.safetensors", two_tensors()));
  const Storage here = file.read("a");
  EXPECT_FALSE(here.is_mapped() || here.is_read_only());
  EXPECT_TRUE(equal(here, file["a"]));
  const Storage there = file.read("a", "sim:0");
  EXPECT_EQ(there.device(), Device("sim:0"));
  EXPECT_TRUE(equal(there.to("cpu"), here));
}

TEST(Safetensors, ANameThatIsNotThereIsNotFound) {
  const Folder folder;
  const SafetensorsFile file = open_safetensors(folder.write("m.safetensors", two_tensors()));
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_FALSE(file.contains(""));
  EXPECT_ERROR((void)file["c"], AccessError, ErrorCode::not_found);
  EXPECT_ERROR((void)file.read("\x1b[2J"), AccessError, ErrorCode::not_found);
}

TEST(Safetensors, DtypesThatBerthLacksAreListedAndReadableAsBytes) {
  const Folder folder;
  for (const SafetensorsDType& one : safetensors_dtypes()) {
    const std::size_t bytes = static_cast<std::size_t>(one.bits);  // eight elements
    const nlohmann::json header = {{"t", {{"dtype", one.name}, {"shape", {2, 4}}, {"data_offsets", {0, bytes}}}}};
    const SafetensorsFile file = open_safetensors(folder.write("one.safetensors", safetensors_bytes(header.dump(), bytes)));
    EXPECT_EQ(file.entries()[0].format_dtype, one.name);
    EXPECT_EQ(file.entries()[0].dtype, one.dtype);
    EXPECT_EQ(file.bytes("t").item<std::uint8_t>({-1}), bytes - 1);
    if (one.dtype)
      EXPECT_EQ(file["t"].dtype(), *one.dtype);
    else
      EXPECT_ERROR((void)file["t"], ArgumentError, ErrorCode::unsupported_dtype);
  }
  EXPECT_EQ(safetensors_dtypes().size(), 22U);
}

TEST(Safetensors, ALaxReadingTakesWhatTheFormatMayGain) {
  const Folder folder;
  const std::string path = folder.write(
      "new.safetensors",
      safetensors_bytes(
          R"({"t":{"dtype":"F2","shape":[8],"data_offsets":[0,2],"more":{"a":[1,2.5,null,true,"x",{"b":[]}]}},"u":{"dtype":"I8","shape":[],"data_offsets":[2,3]}})",
          3));
  EXPECT_ERROR((void)open_safetensors(path), FormatError, ErrorCode::unsupported_dtype);
  const SafetensorsFile file = open_safetensors(path, {.lax = true});
  EXPECT_EQ(file.entries()[0].format_dtype, "F2");
  EXPECT_EQ(file.bytes("t").size_bytes(), 2U);
  EXPECT_EQ(file["u"].item<std::int8_t>(), 2);
}

TEST(Safetensors, EntriesComeInTheOrderOfTheirBytesWhateverTheHeaderSays) {
  const Folder folder;
  const std::string header =
      R"({"z":{"dtype":"U8","shape":[2],"data_offsets":[3,5]},"e":{"dtype":"U8","shape":[0],"data_offsets":[3,3]},"__metadata__":{"k":"v","":""},"a":{"data_offsets":[0,3],"shape":[3],"dtype":"U8"}}   )";
  const SafetensorsFile file = open_safetensors(folder.write("m.safetensors", safetensors_bytes(header, 5)));
  std::string order;
  for (const TensorEntry& entry : file.entries()) order += entry.name;
  EXPECT_EQ(order, "aez");
  EXPECT_EQ(file["e"].data_ptr(), nullptr) << "no elements, and no bytes of another tensor";
  EXPECT_EQ(file.metadata(), (SafetensorsFile::Metadata{{"k", "v"}, {"", ""}}));
}

TEST(Safetensors, ManyThreadsAskForTensorsAtOnce) {
  const Folder folder;
  const SafetensorsFile file = open_safetensors(folder.write("m.safetensors", two_tensors()));
  std::vector<Storage> got(8);
  std::vector<std::thread> threads;
  for (Storage& one : got) threads.emplace_back([&] { one = file["b"]; });
  for (std::thread& thread : threads) thread.join();
  for (const Storage& one : got) EXPECT_TRUE(one.is_view_of(file["a"]));
}

// ---- Changes to a file that is open.

TEST(Safetensors, AFileCutAfterItWasOpenedIsAnErrorWhereItIsRead) {
  const Folder folder;
  const std::string path = folder.write("m.safetensors", two_tensors());
  const SafetensorsFile file = open_safetensors(path);
  const Storage before = file["a"];
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_EQ(file.state(), FileState::truncated);
  EXPECT_ERROR((void)file["a"], FormatError, ErrorCode::file_truncated);
  EXPECT_ERROR((void)file.bytes("b"), FormatError, ErrorCode::file_truncated);
  EXPECT_ERROR((void)file.read("b"), FormatError, ErrorCode::file_truncated);
  EXPECT_ERROR((void)before.clone(), FormatError, ErrorCode::file_truncated);
  EXPECT_ERROR(save_safetensors(folder / "copy", {{"a", before}}), FormatError, ErrorCode::file_truncated);
  EXPECT_EQ(folder.count(), 1U);
}

TEST(Safetensors, AFileWrittenToAfterItWasOpenedIsAnErrorAndACopyIsImmune) {
  const Folder folder;
  const std::string path = folder.write("m.safetensors", two_tensors());
  const SafetensorsFile file = open_safetensors(path);
  const Storage copy = file.read("b");
  std::string other = two_tensors();
  other.back() = 'x';
  folder.write("m.safetensors", other);
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(5));
  EXPECT_EQ(file.state(), FileState::changed);
  EXPECT_ERROR((void)file["b"], FormatError, ErrorCode::file_changed);
  EXPECT_ERROR((void)file.read("b"), FormatError, ErrorCode::file_changed);
  EXPECT_EQ(copy.item<std::uint8_t>({3}), 27);
}

TEST(Safetensors, AFileReplacedByRenameKeepsItsBytesForWhoHasItOpen) {
  const Folder folder;
  const std::string path = folder.write("m.safetensors", two_tensors());
  const SafetensorsFile file = open_safetensors(path);
  std::filesystem::rename(folder.write("other", "something else"), path);
  EXPECT_EQ(file.state(), FileState::replaced);
  EXPECT_EQ(file["b"].item<std::uint8_t>({3}), 27);
  EXPECT_EQ(file.read("b").item<std::uint8_t>({3}), 27);
}

TEST(Safetensors, LinksInTheFolderOfAnIndexAreFollowed) {
  const Folder folder;
  for (const auto& [name, bytes] : good_shards()) folder.write("blobs/" + name, bytes);
  std::filesystem::create_directory(folder / "snapshot");
  for (const auto& [name, bytes] : good_shards()) std::filesystem::create_symlink("../blobs/" + name, folder / ("snapshot/" + name));
  const SafetensorsFile model = open_safetensors(folder.write("snapshot/model.safetensors.index.json", good_index()));
  ASSERT_EQ(model.files().size(), 2U);
  EXPECT_EQ(model["z"].item<std::uint8_t>({3}), 3);
  EXPECT_EQ(model.find("z")->file, 1U);
  EXPECT_EQ(model.files()[1].path, folder / "snapshot/b.safetensors");
}

TEST(Safetensors, AMappedTensorIsSharedWithNobody) {
  const Folder folder;
  const Storage a = open_safetensors(folder.write("m.safetensors", two_tensors()))["a"];
  berth::share(a);
  EXPECT_TRUE(a.is_mapped() && !a.is_shared()) << "the page cache is shared already";
  auto [one, other] = Channel::make_pair();
  try {
    one.send(a);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_NE(error.why().find("travels by its path"), std::string::npos) << error.what();
  }
}

// ---- Writing.

TEST(SafetensorsWriter, WritesWhatItReadsBitForBit) {
  const Folder folder;
  std::vector<NamedTensor> tensors;
  for (const DTypeInfo& one : all_dtypes()) {
    if (one.dtype == DType::c128) continue;
    const Storage bytes = empty({3 * one.size_bytes()}, DType::u8, "cpu");
    for (std::size_t i = 0; i < bytes.num_elements(); ++i) bytes.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 7 + 1);
    tensors.push_back({std::string(one.name) + "/\"é\n", bytes.reinterpret(one.dtype).reshape({3, 1})});
  }
  tensors.push_back({"scalar", full({}, 5, DType::i64, "cpu")});
  tensors.push_back({"none", empty({0, 7}, DType::f32, "cpu")});
  save_safetensors(folder / "out.safetensors", tensors, {.metadata = {{"format", "pt"}, {"\"", "\\"}}});
  const SafetensorsFile file = open_safetensors(folder / "out.safetensors");
  ASSERT_EQ(file.size(), tensors.size());
  for (const NamedTensor& one : tensors) {
    EXPECT_TRUE(equal(file[one.name], one.storage)) << one.name;
    EXPECT_TRUE(one.storage.num_elements() == 0 || file[one.name].is_mapped()) << one.name << " is aligned";
  }
  EXPECT_EQ(file.metadata()[1].second, "\\");
  EXPECT_EQ(folder.count(), 1U) << "nothing is left beside it";
}

TEST(SafetensorsWriter, AlignsDataToPages) {
  const Folder folder;
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < 40; ++i) {
    tensors.push_back({"odd" + std::to_string(i), full({i % 7 + 1}, i, DType::u8, "cpu")});
    tensors.push_back({"page" + std::to_string(i), full({1024, i % 3 + 1}, i, DType::f32, "cpu")});
    tensors.push_back({"wide" + std::to_string(i), full({i % 5 + 1}, i, DType::f64, "cpu")});
  }
  for (const std::size_t alignment : {1U, 8U, 64U, 4096U, 65536U}) {
    save_safetensors(folder / "out.safetensors", tensors, {.alignment = alignment});
    const SafetensorsFile file = open_safetensors(folder / "out.safetensors");
    EXPECT_EQ(file.files()[0].data_offset % alignment, 0U);
    for (const TensorEntry& entry : file.entries()) {
      EXPECT_EQ(entry.file_offset % size_bytes(*entry.dtype), 0U) << entry.name;
      EXPECT_TRUE(entry.size_bytes % alignment != 0 || entry.file_offset % alignment == 0) << entry.name;
    }
  }
}

TEST(SafetensorsWriter, WritesAnyLayoutFromAnyDevice) {
  const Folder folder;
  const Storage x = from_data({1.F, 2.F, 3.F, 4.F, 5.F, 6.F}, {2, 3}, "cpu");
  const Storage turned = x.transpose(0, 1);
  save_safetensors(folder / "out.safetensors", {{"turned", turned}, {"far", x.to("sim:0")}, {"slice", x.slice(1, 1, 2)}});
  const SafetensorsFile file = open_safetensors(folder / "out.safetensors");
  EXPECT_TRUE(equal(file["turned"], turned.contiguous()));
  EXPECT_TRUE(equal(file["far"], x));
  EXPECT_EQ(file["slice"].item<float>({1, 0}), 5.F);
}

TEST(SafetensorsWriter, SavingOverAFileThatIsMappedLeavesTheMappingItsBytes) {
  const Folder folder;
  const std::string path = folder / "m.safetensors";
  save_safetensors(path, {{"x", full({5000}, 1, DType::i32, "cpu")}});
  const SafetensorsFile old = open_safetensors(path);
  const Storage x = old["x"];
  save_safetensors(path, {{"x", full({5000}, 2, DType::i32, "cpu")}, {"y", x}});
  EXPECT_EQ(x.item<std::int32_t>({4999}), 1);
  EXPECT_EQ(old.state(), FileState::replaced);
  EXPECT_EQ(open_safetensors(path)["x"].item<std::int32_t>({4999}), 2);
  EXPECT_TRUE(equal(open_safetensors(path)["y"], x));
}

TEST(SafetensorsWriter, WithoutCommitNothingIsThere) {
  const Folder folder;
  {
    SafetensorsWriter writer(folder / "out.safetensors", {{"x", DType::f32, {2}}});
    writer.write("x", full({2}, 1, DType::f32, "cpu"));
    EXPECT_EQ(folder.count(), 0U) << "it has no name yet";
  }
  EXPECT_EQ(folder.count(), 0U);
}

TEST(SafetensorsWriter, RefusesToTakeThePlaceOfWhatIsNoFile) {
  const Folder folder;
  const Storage x = full({2}, 1, DType::f32, "cpu");
  EXPECT_ERROR(save_safetensors(folder.path(), {{"x", x}}), DeviceError, ErrorCode::unsupported);
  EXPECT_ERROR(save_safetensors(folder.path() + "/", {{"x", x}}), DeviceError, ErrorCode::unsupported);
  EXPECT_ERROR(save_safetensors("/dev/null", {{"x", x}}), DeviceError, ErrorCode::unsupported);
  EXPECT_ERROR(save_safetensors(folder / "no/where", {{"x", x}}), AccessError, ErrorCode::not_found);
  EXPECT_ERROR(save_safetensors("", {{"x", x}}), ArgumentError, ErrorCode::invalid_name);
  EXPECT_EQ(folder.count(), 0U);
}

TEST(SafetensorsWriter, KeepsTheRightsOfTheFileAndReplacesALinkNotWhatItLeadsTo) {
  const Folder folder;
  const std::string path = folder.write("m.safetensors", "old");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::create_symlink(path, folder / "link");
  const Storage x = full({2}, 1, DType::f32, "cpu");
  save_safetensors(folder / "link", {{"x", x}});
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(folder.read("m.safetensors"), "old");
  save_safetensors(path, {{"x", x}});
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(SafetensorsWriter, RefusesWhatTheFormatCannotHold) {
  const Folder folder;
  const std::string path = folder / "out.safetensors";
  const Storage x = full({2}, 1, DType::f32, "cpu");
  EXPECT_ERROR(save_safetensors(path, {{"x", x}, {"x", x}}), ArgumentError, ErrorCode::duplicate_value);
  EXPECT_ERROR(save_safetensors(path, {{"__metadata__", x}}), ArgumentError, ErrorCode::invalid_name);
  EXPECT_ERROR(save_safetensors(path, {{"\xff", x}}), ArgumentError, ErrorCode::invalid_name);
  EXPECT_ERROR(save_safetensors(path, {{std::string("a\0b", 3), x}}), ArgumentError, ErrorCode::invalid_name);
  EXPECT_ERROR(save_safetensors(path, {{"c", x.to(DType::c128)}}), ArgumentError, ErrorCode::unsupported_dtype);
  EXPECT_ERROR(save_safetensors(path, {{"x", x}}, {.alignment = 3}), ArgumentError, ErrorCode::invalid_alignment);
  EXPECT_ERROR(save_safetensors(path, {{"x", x}}, {.alignment = 4 << 20}), ArgumentError, ErrorCode::invalid_alignment);
  EXPECT_ERROR(save_safetensors(path, {{"x", x}}, {.metadata = {{"a", "1"}, {"a", "2"}}}), ArgumentError, ErrorCode::duplicate_value);
  EXPECT_ERROR(save_safetensors(path, {{"x", x}}, {.metadata = {{"a", "\xc0"}}}), ArgumentError, ErrorCode::invalid_name);
  EXPECT_ERROR(SafetensorsWriter(path, {{"f", DType::u8, {3}, "F4"}}), ArgumentError, ErrorCode::size_overflow);
  SafetensorsWriter writer(path, {{"x", DType::f32, {2}}, {"f", DType::u8, {4}, "F4"}});
  EXPECT_ERROR(writer.write("y", x), ArgumentError, ErrorCode::invalid_name);
  EXPECT_ERROR(writer.write("x", full({3}, 1, DType::f32, "cpu")), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(writer.write("f", full({2}, 1, DType::f32, "cpu")), ArgumentError, ErrorCode::size_mismatch);
  writer.write("x", x);
  EXPECT_ERROR(writer.write("x", x), ArgumentError, ErrorCode::invalid_name);
  EXPECT_ERROR(writer.commit(), ArgumentError, ErrorCode::undefined_value);
  writer.write("f", full({2}, 0x21, DType::u8, "cpu"));
  writer.commit();
  EXPECT_ERROR(writer.commit(), AccessError, ErrorCode::already_consumed);
  EXPECT_EQ(open_safetensors(path).bytes("f").item<std::uint8_t>({1}), 0x21);
}

}  // namespace
}  // namespace berth::testing
