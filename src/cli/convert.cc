// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/refuse.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/tensor_source.h"
#include "os/system.h"

// `berth convert`: writes a tensor file in another format, with other dtypes or another alignment.
namespace berth::internal::cli {

namespace {

// The requested output, validated before anything is read.
struct Wanted {
  bool arrays = false;         // an .npy or .npz file; else safetensors
  std::optional<DType> dtype;  // of floating-point tensors; none: unchanged
  std::uint64_t align = 4096;
};

Wanted wanted_by(const ConvertCommand& command) {
  Wanted wanted{.arrays = command.out.ends_with(".npz") || command.out.ends_with(".npy"), .dtype = {}};
  if (!command.dtype.empty()) wanted.dtype = parse_dtype(command.dtype);
  if (wanted.dtype && info(*wanted.dtype).kind != DTypeKind::floating)
    base::refuse(ErrorCode::unsupported_dtype, text::join("--dtype ", command.dtype),
                 "only floating-point tensors are converted, to another such dtype", "use f64, f32, bf16, f16 or an f8");
  if (command.align.empty()) return wanted;
  if (wanted.arrays)
    base::refuse(ErrorCode::invalid_argument, text::join("--align for ", text::quoted(command.out)),
                 "arrays of NumPy are always aligned to 64 bytes", "leave it out, or write safetensors");
  if (!text::parse_bytes(command.align, wanted.align))
    base::refuse(ErrorCode::invalid_alignment, text::join("--align ", text::quoted(command.align)), "it is not a byte count",
                 "use 4096 or 64KiB");
  return wanted;
}

struct Outcome {
  std::size_t converted = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
};

std::string progress_bar(std::uint64_t part, std::uint64_t whole) {
  constexpr std::uint64_t kWidth = 30;
  const std::uint64_t full = whole == 0 ? kWidth : part / 1024 * kWidth / std::max<std::uint64_t>(whole / 1024, 1);
  std::string out;
  for (std::uint64_t i = 0; i < kWidth; ++i) out += i < full ? "━" : "─";
  return out;
}

class Conversion {
 public:
  Conversion(const ConvertCommand& command, const Wanted& wanted, const TensorSource& source)
      : command_(command), wanted_(wanted), source_(source) {
    for (const TensorEntry& entry : source.entries()) outcome_.bytes_in += entry.size_bytes;
  }

  Outcome run() {
    if (wanted_.arrays)
      write_arrays();
    else
      write_safetensors();
    return outcome_;
  }

 private:
  // Floating-point tensors get the wanted dtype; integers, booleans and unknown dtypes are unchanged.
  DType target(const TensorEntry& entry) const {
    const bool fraction = entry.dtype && info(*entry.dtype).kind == DTypeKind::floating;
    return fraction && wanted_.dtype ? *wanted_.dtype : entry.dtype.value_or(DType::u8);
  }

  void write_safetensors() {
    std::vector<TensorSpec> specs;
    for (const TensorEntry& entry : source_.entries())
      specs.push_back({entry.name, target(entry), entry.shape, entry.dtype ? std::string() : entry.format_dtype});
    SafetensorsWriter writer(command_.out, std::move(specs), {.alignment = wanted_.align, .metadata = source_.metadata()});
    for (const TensorEntry& entry : source_.entries()) {
      say(entry);
      writer.write(entry.name, made(entry));
      forget(entry);
    }
    writer.commit();
  }

  void write_arrays() {
    const bool many = command_.out.ends_with(".npz");
    if (const std::size_t count = source_.entries().size(); !many && count != 1)
      base::refuse(ErrorCode::invalid_argument, text::join("writing ", count_of(count, "tensor"), " to ", text::quoted(command_.out)),
                   "an .npy file holds one", "write an .npz file");
    std::vector<NamedTensor> arrays;
    for (const TensorEntry& entry : source_.entries()) {
      say(entry);
      arrays.push_back({entry.name, made(entry)});
    }
    many ? save_npz(command_.out, arrays) : save_npy(command_.out, arrays[0].storage);
  }

  Storage made(const TensorEntry& entry) {
    const DType dtype = target(entry);
    const Storage out = entry.dtype ? source_.tensor(entry).to(dtype) : source_.bytes(entry);
    outcome_.converted += entry.dtype && dtype != *entry.dtype ? 1 : 0;
    outcome_.bytes_out += out.size_bytes();
    done_ += entry.size_bytes;
    return out;
  }

  // Drops the pages of a tensor after its only read, so that files larger than memory can be converted.
  void forget(const TensorEntry& entry) const {
    const Storage mapped = source_.bytes(entry);
    if (mapped.num_elements() != 0) drop_mapped(mapped);
  }

  void say(const TensorEntry& entry) {
    progress_.say(fmt::format("{} {} of {}  {}", progress_bar(done_, outcome_.bytes_in), text::bytes(done_), text::bytes(outcome_.bytes_in),
                              text::printable(entry.name, 40)));
  }

  const ConvertCommand& command_;
  const Wanted& wanted_;
  const TensorSource& source_;
  Outcome outcome_;
  std::uint64_t done_ = 0;
  Progress progress_;
};

}  // namespace

Exit run_convert(const ConvertCommand& command) {
  const std::uint64_t start = os::steady_time_ns();
  const Wanted wanted = wanted_by(command);
  const TensorSource source(command.in, command.lax);
  const Outcome outcome = Conversion(command, wanted, source).run();
  const double seconds = static_cast<double>(os::steady_time_ns() - start) / 1e9;
  if (command.json) {
    JsonWriter json(JsonWriter::Style::pretty);
    json.begin_object().member("in", command.in).member("out", command.out).member("tensors", source.entries().size());
    json.member("converted", outcome.converted).member("bytes_in", outcome.bytes_in).member("bytes_out", outcome.bytes_out);
    print(json.member("seconds", seconds).end_object().take() + "\n");
  } else {
    print(fmt::format("{} {}: {}, {}, {} converted, in {:.1f} s\n", paint(Mood::good, "✔"), text::printable(command.out),
                      count_of(source.entries().size(), "tensor"), text::bytes(outcome.bytes_out), outcome.converted, seconds));
  }
  return Exit::ok;
}

}  // namespace berth::internal::cli
