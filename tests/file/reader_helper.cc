// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "berth/base/error.h"
#include "berth/base/json.h"
#include "berth/file/npy.h"
#include "berth/file/safetensors.h"
#include "berth/plan/onnx.h"
#include "file/numpy/crc32.h"

// Says of each file on standard input what berth reads in it, for tests/file/differential.py: a file is its length (4 bytes,
// least first), its format (1 byte) and its bytes; an answer is a line of JSON.
namespace {

using namespace berth;

// A file in memory, renewed for each input.
class Input {
 public:
  void hold(const std::string& bytes) const {
    if (ftruncate(number_, 0) != 0 || write(number_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
        lseek(number_, 0, SEEK_SET) != 0)
      throw std::bad_alloc();
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(number_); }

 private:
  int number_ = memfd_create("berth", MFD_CLOEXEC);
};

void describe(JsonWriter& json, std::string_view name, const Storage& tensor) {
  const Storage dense = tensor.clone();
  json.begin_object().member("name", name).key("shape").begin_array();
  for (const std::int64_t dim : dense.shape()) json.value(dim);
  json.end_array().member(
      "sum", internal::file::crc32({static_cast<const std::byte*>(dense.data_ptr()), dense.num_elements() * size_bytes(dense.dtype())}));
  json.end_object();
}

template <class File>
void describe_all(JsonWriter& json, const File& file) {
  for (const TensorEntry& entry : file.entries()) {
    if (entry.dtype)
      describe(json, entry.name, file[entry]);
    else
      describe(json, entry.name, file.bytes(entry));
  }
}

void read(JsonWriter& json, char format, const Input& input, const std::string& bytes) {
  if (format == 's') describe_all(json, open_safetensors(input.path()));
  if (format == 'n') {
    const Storage array = map_npy(input.path());
    describe(json, "", array);
  }
  if (format == 'z') {
    const NpzFile file = open_npz(input.path());
    file.verify();
    describe_all(json, file);
  }
  if (format == 'o')
    (void)read_onnx(bytes, {.allow_unknown = true, .external_size = [](const std::string&) { return std::optional<std::uint64_t>(5120); }});
}

std::string answer(char format, const Input& input, const std::string& bytes) {
  JsonWriter json;
  try {
    input.hold(bytes);
    json.begin_object().member("accepted", true).key("tensors").begin_array();
    read(json, format, input, bytes);
    json.end_array().end_object();
    return json.take();
  } catch (const Error& error) {
    JsonWriter refused;
    refused.begin_object()
        .member("accepted", false)
        .member("rule", error.fact("rule"))
        .member("code", to_string(error.code()))
        .member("why", error.why());
    refused.end_object();
    return refused.take();
  }
}

bool read_all(void* to, std::size_t bytes) { return std::fread(to, 1, bytes, stdin) == bytes; }

}  // namespace

int main() {
  const Input input;
  std::string bytes;
  for (unsigned char head[5]; read_all(head, sizeof head);) {
    bytes.resize(head[0] | std::size_t{head[1]} << 8 | std::size_t{head[2]} << 16 | std::size_t{head[3]} << 24);
    if (!read_all(bytes.data(), bytes.size())) return 1;
    std::puts(answer(static_cast<char>(head[4]), input, bytes).c_str());
    std::fflush(stdout);
  }
  return 0;
}
