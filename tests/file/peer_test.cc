// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include "file/file_support.h"
#include "support/everything.h"
#include "support/process.h"
#include "support/scale.h"

// Files of the reference implementations in Python are read, and ours are read by them, bit for bit, where they
// are installed (tests/file/peer.py).
namespace berth::testing {
namespace {

struct Named {
  const char* name;
  DType dtype;
};
constexpr Named kDTypes[] = {{"bool", DType::boolean},  {"uint8", DType::u8},       {"uint16", DType::u16},  {"uint32", DType::u32},
                             {"uint64", DType::u64},    {"int8", DType::i8},        {"int16", DType::i16},   {"int32", DType::i32},
                             {"int64", DType::i64},     {"float16", DType::f16},    {"float32", DType::f32}, {"float64", DType::f64},
                             {"complex64", DType::c64}, {"complex128", DType::c128}};

Storage array(DType dtype, const Shape& shape) {
  const Storage bytes = empty({shape.size_bytes(dtype)}, DType::u8, "cpu");
  for (std::size_t i = 0; i < bytes.num_elements(); ++i)
    bytes.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(dtype == DType::boolean ? i % 3 == 0 : i * 7 + 1);
  return Storage(bytes.buffer(), dtype, shape, Strides::contiguous(shape));
}

std::vector<NamedTensor> tensors() {
  std::vector<NamedTensor> all;
  for (const Named& one : kDTypes) {
    if (one.dtype != DType::c64 && one.dtype != DType::c128) all.push_back({std::string(one.name) + ".weight", array(one.dtype, {3, 5})});
  }
  all.push_back({"scalar/é", array(DType::i32, {})});
  all.push_back({"none", array(DType::f32, {0, 7})});
  return all;
}

// The same elements with the first axis contiguous.
Storage in_fortran_order(const Storage& x) {
  const Storage turned = empty({x.shape()[2], x.shape()[1], x.shape()[0]}, x.dtype(), "cpu").permute({2, 1, 0});
  turned.copy_from(x);
  return turned;
}

class FilePeer : public ::testing::Test {
 protected:
  // Returns false when it is skipped.
  bool run(const char* what) {
    const char* const python = std::getenv("BERTH_PYTHON");
    const Ran ran = run_command(std::string(python == nullptr ? "python3" : python) + " tests/file/peer.py " + what + ' ' + folder_.path());
    if (ran.exit_code == 77 || ran.exit_code == 127) return false;
    EXPECT_EQ(ran.exit_code, 0) << ran.output;
    did(std::string(what) + ": " + ran.output.substr(0, ran.output.find('\n')));
    return true;
  }
  const Folder folder_;
};

constexpr const char* kMissing =
    "safetensors and numpy are not installed: pip install safetensors numpy (BERTH_PYTHON names another Python)";

TEST_F(FilePeer, ReadsWhatTheReferencesWrite) {
  if (!run("write")) GTEST_SKIP() << kMissing;
  const SafetensorsFile file = open_safetensors(folder_ / "reference.safetensors");
  EXPECT_EQ(file.size(), tensors().size());
  EXPECT_EQ(file.metadata().size(), 2U);
  for (const NamedTensor& one : tensors()) EXPECT_TRUE(equal(file[one.name], one.storage)) << one.name;
  const NpzFile archive = open_npz(folder_ / "reference.npz");
  archive.verify();
  EXPECT_EQ(archive.size(), std::size(kDTypes));
  for (const Named& one : kDTypes) {
    EXPECT_TRUE(equal(archive[one.name], array(one.dtype, {3, 5}))) << one.name;
    const Storage plain = array(one.dtype, {2, 3, 4});
    EXPECT_TRUE(equal(map_npy(folder_ / (std::string("c_") + one.name + ".npy")), plain)) << one.name;
    const Storage fortran = map_npy(folder_ / (std::string("f_") + one.name + ".npy"));
    EXPECT_EQ(fortran.strides(), Strides({1, 2, 6}));
    EXPECT_TRUE(equal(fortran, plain)) << one.name;
  }
}

TEST_F(FilePeer, TheReferencesReadWhatWeWrite) {
  save_safetensors(folder_ / "ours.safetensors", tensors(), {.metadata = {{"format", "np"}, {"who", "berth"}}});
  std::vector<NamedTensor> arrays;
  for (const Named& one : kDTypes) {
    arrays.push_back({one.name, array(one.dtype, {3, 5})});
    const Storage plain = array(one.dtype, {2, 3, 4});
    save_npy(folder_ / (std::string("ours_c_") + one.name + ".npy"), plain);
    save_npy(folder_ / (std::string("ours_f_") + one.name + ".npy"), in_fortran_order(plain));
  }
  save_npz(folder_ / "ours.npz", arrays);
  if (!run("read")) GTEST_SKIP() << kMissing;
}

}  // namespace
}  // namespace berth::testing
