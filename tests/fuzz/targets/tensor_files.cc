// SPDX-License-Identifier: Apache-2.0
#include "berth/base/error.h"
#include "berth/file/npy.h"
#include "berth/file/safetensors.h"
#include "berth/storage/create.h"
#include "fuzz/folder.h"
#include "fuzz/zip.h"

// Whole files, opened, mapped and written again: every tensor can be read to its last byte, and has the same bytes in the
// file that is written of it.
namespace berth::testing::fuzz {
namespace {

MemoryFolder& folder() {
  static MemoryFolder made("FUZZ_FOLDER");
  return made;
}

std::string file_named(const char* name, std::string_view bytes) {
  folder().write(name, bytes);
  return folder() / name;
}

void read_safetensors(std::string_view bytes) {
  const SafetensorsFile file = open_safetensors(file_named("in.safetensors", bytes));
  std::vector<NamedTensor> all;
  for (const TensorEntry& entry : file.entries()) {
    if (!entry.dtype) return (void)file.bytes(entry).clone();
    all.push_back({entry.name, file[entry]});
  }
  const std::string path = file_named("out.safetensors", "");
  save_safetensors(path, all, {.alignment = 8, .metadata = file.metadata()});
  const SafetensorsFile again = open_safetensors(path);
  require(again.size() == file.size() && again.metadata() == file.metadata(), "a file that is written has the same tensors");
  for (const NamedTensor& one : all) require(equal(again[one.name], one.storage), "a tensor that is written has the same elements");
}

void read_npy(std::string_view bytes) {
  const Storage x = map_npy(file_named("in.npy", bytes));
  const std::string path = file_named("out.npy", "");
  save_npy(path, x);
  require(equal(map_npy(path), x), "an array that is written has the same elements");
}

void read_npz(std::string_view bytes) {
  const NpzFile file = open_npz(file_named("in.npz", bytes));
  file.verify();
  for (const TensorEntry& entry : file.entries()) (void)file.bytes(entry).clone();
}

void run(std::string_view bytes) {
  if (bytes.starts_with("\x93NUMPY")) return read_npy(bytes);
  return bytes.starts_with("PK") ? read_npz(bytes) : read_safetensors(bytes);
}

std::string mutate(Random& random, std::string bytes, const Change& change) { return mend_zip(random, change(std::move(bytes))); }

const Registered tensor_files({.name = "tensor_files", .run = run, .mutate = mutate});

}  // namespace
}  // namespace berth::testing::fuzz
