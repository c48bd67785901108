// SPDX-License-Identifier: Apache-2.0
#include "berth/file/npy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "file/file_support.h"
#include "file/numpy/crc32.h"
#include "file/numpy/zip.h"
#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {

using namespace internal;
using namespace internal::file;
namespace {

std::string npy(const std::string& dictionary, std::size_t data_bytes, int version = 1) {
  std::string out =
      std::string("\x93NUMPY") + static_cast<char>(version) + '\0' + little(dictionary.size(), version == 1 ? 2 : 4) + dictionary;
  for (std::size_t i = 0; i < data_bytes; ++i) out += static_cast<char>(i);
  return out;
}

TEST(Npy, ReadsEveryVersionAndBothOrders) {
  const Folder folder;
  for (const int version : {1, 2, 3}) {
    std::string dictionary = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }";
    dictionary.resize(version == 1 ? 118 : 116, ' ');
    const std::string path = folder.write("c.npy", npy(dictionary, 12, version));
    const Storage x = map_npy(path);
    EXPECT_TRUE(x.is_mapped() && x.is_read_only() && x.is_contiguous());
    EXPECT_EQ(x.item<std::int16_t>({0, 1}), 0x0302);
    const Storage f = map_npy(folder.write("f.npy", npy("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3)}\n", 12, version)));
    EXPECT_EQ(f.shape(), Shape({2, 3}));
    EXPECT_EQ(f.strides(), Strides({1, 2}));
    EXPECT_EQ(f.item<std::int16_t>({1, 0}), 0x0302);
  }
}

TEST(Npy, ReadsScalarsListsAndNoElements) {
  const Folder folder;
  EXPECT_EQ(map_npy(folder.write("s.npy", npy("{'shape':(),'descr':\"<f8\",'fortran_order':True}", 8))).rank(), 0U);
  EXPECT_EQ(map_npy(folder.write("l.npy", npy("{'descr': '|u1', 'fortran_order': True, 'shape': (3L,), }", 3))).item<std::uint8_t>({2}), 2);
  EXPECT_EQ(map_npy(folder.write("n.npy", npy("{'descr': '<c16', 'fortran_order': False, 'shape': (4, 0, 5)}", 0))).num_elements(), 0U);
}

TEST(Npy, AnArrayThatIsNotAlignedIsReadAndNotMapped) {
  const Folder folder;
  const Storage x = map_npy(folder.write("odd.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8)));
  EXPECT_FALSE(x.is_mapped());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data_ptr()) % 4, 0U);
}

TEST(Npy, BytesWithoutAMeaningAreListed) {
  const Folder folder;
  const std::string path = folder.write("v.npy", npy("{'descr': '|V2', 'fortran_order': False, 'shape': (3,)}", 6));
  const TensorEntry entry = inspect_npy(path);
  EXPECT_EQ(entry.format_dtype, "|V2");
  EXPECT_FALSE(entry.dtype);
  EXPECT_EQ(entry.size_bytes, 6U);
  EXPECT_ERROR((void)map_npy(path), ArgumentError, ErrorCode::unsupported_dtype);
}

TEST(Npy, WritesWhatItReadsBitForBit) {
  const Folder folder;
  const std::string path = folder / "x.npy";
  for (const DTypeInfo& one : all_dtypes()) {
    const Storage bytes = empty({24 * one.size_bytes()}, DType::u8, "cpu");
    for (std::size_t i = 0; i < bytes.num_elements(); ++i) bytes.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 11 + 1);
    const Storage x = bytes.reinterpret(one.dtype).reshape({2, 3, 4});
    if (one.name == "bf16" || one.name.starts_with("f8")) {
      EXPECT_ERROR(save_npy(path, x), ArgumentError, ErrorCode::unsupported_dtype);
      continue;
    }
    for (const Storage& layout : {x, x.permute({2, 1, 0}), x.transpose(0, 1), x.slice(1, 1, 2), x.to("sim:0")}) {
      save_npy(path, layout);
      const Storage back = map_npy(path);
      EXPECT_TRUE(back.is_mapped());
      EXPECT_TRUE(equal(back, layout)) << one.name << ' ' << layout.strides().to_string();
    }
  }
  save_npy(path, full({}, 3, DType::i64, "cpu"));
  EXPECT_EQ(map_npy(path).item<std::int64_t>(), 3);
}

TEST(Npy, CanBeMappedForWriting) {
  const Folder folder;
  const std::string path = folder / "x.npy";
  save_npy(path, zeros({4, 4}, DType::f32, "cpu"));
  Storage x = map_npy(path, FileMode::read_write);
  x.fill(2.5);
  x.close();
  EXPECT_EQ(map_npy(path).item<float>({3, 3}), 2.5F);
  EXPECT_ERROR((void)map_npy(path, FileMode::create), ArgumentError, ErrorCode::invalid_argument);
}

TEST(Npz, WritesWhatItReadsBitForBit) {
  const Folder folder;
  const Storage x = from_data({1.F, 2.F, 3.F, 4.F, 5.F, 6.F}, {2, 3}, "cpu");
  save_npz(folder / "all.npz",
           {{"x", x}, {"turned", x.transpose(0, 1)}, {"é b", full({}, 7, DType::i8, "cpu")}, {"none", zeros({0}, DType::f64, "cpu")}});
  const NpzFile file = open_npz(folder / "all.npz");
  ASSERT_EQ(file.size(), 4U);
  EXPECT_TRUE(file["x"].is_mapped()) << "arrays are aligned";
  EXPECT_TRUE(equal(file["x"], x));
  EXPECT_TRUE(equal(file["turned"], x.transpose(0, 1)));
  EXPECT_EQ(file["turned"].strides(), Strides({1, 3}));
  EXPECT_TRUE(equal(file.read("turned", "sim:0").to("cpu"), x.transpose(0, 1)));
  EXPECT_EQ(file["é b"].item<std::int8_t>(), 7);
  EXPECT_EQ(file["none"].num_elements(), 0U);
  EXPECT_ERROR((void)file["y"], AccessError, ErrorCode::not_found);
  file.verify();
  save_npz(folder / "empty.npz", {});
  EXPECT_EQ(open_npz(folder / "empty.npz").size(), 0U);
}

TEST(Npz, DamageIsFoundByItsSums) {
  const Folder folder;
  const std::string path = folder / "x.npz";
  save_npz(path, {{"x", full({1 << 20}, 1, DType::f32, "cpu")}});
  std::string bytes = folder.read("x.npz");
  bytes[3'000'000] ^= 1;
  folder.write("x.npz", bytes);
  EXPECT_ERROR(open_npz(path).verify(), FormatError, ErrorCode::format_error);
}

TEST(Npz, RefusesNamesThatToolsWouldUnpackElsewhere) {
  const Folder folder;
  const Storage x = full({1}, 1, DType::u8, "cpu");
  for (const char* const name : {"", "/etc/x", "../x", "a/b", ".."})
    EXPECT_ERROR(save_npz(folder / "x.npz", {{name, x}}), ArgumentError, ErrorCode::invalid_name);
  EXPECT_ERROR(save_npz(folder / "x.npz", {{"x", x}, {"x", x}}), ArgumentError, ErrorCode::duplicate_value);
  EXPECT_EQ(folder.count(), 0U);
}

// A sparse archive: only the headers around the members have data.
class SparseArchive {
 public:
  void add(const std::string& name, std::uint64_t bytes) {
    begins_.push_back(layout_.add(name, bytes, 0, 64));
    pieces_[layout_.local_offset()] = layout_.local_header();
  }
  std::vector<file::ZipMember> parse() {
    pieces_[layout_.directory_offset()] = layout_.directory();
    const std::uint64_t end = layout_.directory_offset() + layout_.directory().size();
    return file::parse_zip([&](std::uint64_t offset, std::span<std::byte> target) { read(offset, target); }, end, "sparse");
  }
  const std::vector<std::uint64_t>& begins() const { return begins_; }

 private:
  void read(std::uint64_t offset, std::span<std::byte> target) const {
    std::ranges::fill(target, std::byte{0});
    for (auto piece = std::prev(pieces_.upper_bound(offset)); piece != pieces_.end() && piece->first < offset + target.size(); ++piece) {
      const std::uint64_t begin = std::max(offset, piece->first);
      const std::uint64_t end = std::min(offset + target.size(), piece->first + piece->second.size());
      for (std::uint64_t i = begin; i < end; ++i) target[i - offset] = static_cast<std::byte>(piece->second[i - piece->first]);
    }
  }
  file::ZipLayout layout_;
  std::map<std::uint64_t, std::string> pieces_;
  std::vector<std::uint64_t> begins_;
};

TEST(Npz, ArchivesPastFourGibibytesAndSixtyFiveThousandMembersAreWrittenAndRead) {
  SparseArchive large;
  large.add("small.npy", 100);
  large.add("large.npy", 5ULL << 30);
  large.add("behind.npy", 100);
  const std::vector<file::ZipMember> members = large.parse();
  ASSERT_EQ(members.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(members[i].offset, large.begins()[i]);
  EXPECT_EQ(members[1].bytes, 5ULL << 30);
  EXPECT_EQ(members[2].name, "behind.npy");
  SparseArchive many;
  for (int i = 0; i < 65'536; ++i) many.add(std::to_string(i), 1);
  EXPECT_EQ(many.parse().size(), 65'536U);
}

TEST(Crc32, IsTheOneOfZip) {
  const std::string_view text = "123456789";
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_EQ(file::crc32(bytes), 0xCBF43926U);
  EXPECT_EQ(file::crc32(bytes.subspan(4), file::crc32(bytes.first(4))), 0xCBF43926U);
  EXPECT_EQ(file::crc32({}), 0U);
}

}  // namespace
}  // namespace berth::testing
