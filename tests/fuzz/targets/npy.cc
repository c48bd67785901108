// SPDX-License-Identifier: Apache-2.0
#include "berth/base/error.h"
#include "file/file_support.h"
#include "file/judges.h"
#include "file/numpy/npy_header.h"
#include "fuzz/target.h"
#include "fuzz/words.h"

// Arrays of NumPy. A header that is written anew for what was read says the same.
namespace berth::testing::fuzz {
namespace {

using namespace internal::file;

TensorEntry read(std::string_view bytes) { return parse_npy(bytes.substr(0, kMostNpyBytes), {.path = "fuzz", .bytes = bytes.size()}); }

void run(std::string_view bytes) {
  const auto wrong = judge_npy(std::string(bytes), 0);
  require(!wrong, wrong.value_or(""));
  const TensorEntry entry = read(bytes);
  const auto header = entry.dtype ? npy_header(*entry.dtype, entry.shape, entry.fortran_order) : std::nullopt;
  if (!header) return;
  const TensorEntry again = read(*header + std::string(bytes.substr(entry.file_offset)));
  require(again.dtype == entry.dtype && again.shape == entry.shape && again.fortran_order == entry.fortran_order &&
              again.size_bytes == entry.size_bytes,
          "an array that was read is written and read again the same");
}

// Corrects the length in front of the header, which ends with the first line.
std::string mutate(Random&, std::string bytes, const Change& change) {
  bytes = change(std::move(bytes));
  const std::size_t lead = bytes.size() > 6 && bytes[6] == '\1' ? 10 : 12;
  const std::size_t end = bytes.find('\n', lead);
  if (bytes.size() < lead || end == std::string::npos) return bytes;
  return bytes.replace(8, lead - 8, little(end + 1 - lead, lead - 8));
}

const Registered npy({.name = "npy",
                      .run = run,
                      .mutate = mutate,
                      .words = text_words({"'descr'", "'fortran_order'", "'shape'", "True", "False", "'<f4'", "'|b1'", "'|V2'", "'>i8'",
                                           "(1,)", "(", ")", "{", "}", ": ", "\x93NUMPY\1", "'", "\""})});

}  // namespace
}  // namespace berth::testing::fuzz
