// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>
#include <string>

#include "berth/berth.h"
#include "expect.h"

// For users of memory-mapped storages and weight files: the corresponding calls of berth. The table is in
// docs/coming-from.md.
using namespace berth;

int main() {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("berth_example_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string raw = folder / "data.bin";

  // MappedStorage(path, shape, dtype, mode="w+"), torch.from_file(path, shared=True): a file of a given size,
  // written through memory.
  Storage out = map_file(raw, {64, 64}, DType::f32, FileMode::create);
  out.fill(1.5);
  flush_mapped(out);
  out.close();
  expect(std::filesystem::file_size(raw) == 64 * 64 * 4, "the file has exactly that size");

  // mode="r", np.memmap(path, dtype, mode="r"): without a shape, it follows from the file's size.
  const Storage all = map_file(raw, DType::f32);
  expect(all.is_mapped() && all.is_read_only() && all.shape() == Shape({4096}), "mapped, read-only, 4096 elements");
  bool refused = false;
  try {
    all.fill(0);
  } catch (const AccessError& error) {
    refused = error.code() == ErrorCode::read_only;
  }
  expect(refused, "writing through it is an error, and no signal");

  // mode="c": copy-on-write.
  const Storage mine = map_file(raw, {4096}, DType::f32, FileMode::private_copy);
  mine.fill(2);
  expect(mine.item<float>({7}) == 2.F && all.item<float>({7}) == 1.5F, "what is written to a private copy stays there");

  // save_file, safe_open, load_file: a weight file, mapped when it is opened, read tensor by tensor.
  const std::string model = folder / "model.safetensors";
  save_safetensors(model, {{"w", all.reshape({64, 64}).to(DType::bf16)}, {"b", full({64}, 3, DType::i32, "cpu")}});
  const SafetensorsFile file = open_safetensors(model);
  expect(file["w"].is_mapped() && file["w"].shape() == Shape({64, 64}), "f[\"w\"] is mapped");
  expect(file.read("b", "sim:0").device() == Device("sim:0"), "read(name, device) puts it where it belongs");

  // np.save, np.load(path, mmap_mode="r").
  save_npy(folder / "x.npy", all.reshape({64, 64}).transpose(0, 1));
  expect(equal(map_npy(folder / "x.npy"), all.reshape({64, 64}).transpose(0, 1)), "arrays come back in the order they went");

  // np.load("x.npz")["a"], np.savez; load_file(path, device).to(dtype).
  save_npz(folder / "x.npz", {{"a", all}});
  expect(equal(open_npz(folder / "x.npz")["a"], all), "archives, mapped");
  const LoadedTensors loaded = load(model, "sim:0", {.dtype = DType::f32});
  expect(loaded["w"].dtype() == DType::f32 && loaded["w"].device() == Device("sim:0"), "load brings all tensors, converted, to a device");

  // A file opened for writing that is too short, and hints.
  const Storage longer = map_file(raw, {8192}, DType::f32, FileMode::read_write, {.may_grow = true});
  prefetch_mapped(longer);
  expect(std::filesystem::file_size(raw) == 8192 * 4 && longer.item<float>({8191}) == 0, "may_grow lengthens it, with zeros");
  drop_mapped(longer);

  // A file that is truncated under its reader, where others get SIGBUS.
  const Storage reader = map_file(raw, DType::f32);
  std::filesystem::resize_file(raw, 100);
  bool truncated = false;
  try {
    (void)reader.clone();
  } catch (const FormatError& error) {
    truncated = error.code() == ErrorCode::file_truncated;
  }
  expect(truncated && mapped_state(reader) == FileState::truncated, "a truncated file is an error, and mapped_state says so");

  std::filesystem::remove_all(folder);
  return g_right ? 0 : 1;
}
