// SPDX-License-Identifier: Apache-2.0
#include "file/load/load_tensors.h"

#include <algorithm>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/copy/route.h"
#include "berth/copy/threads.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "file/tensors.h"
#include "os/file/read_parts.h"
#include "os/system.h"

namespace berth::internal::file::load {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
constexpr std::size_t kLeastPieceBytes = std::size_t{256} << 10;

bool is_floating(DType dtype) noexcept { return info(dtype).kind == DTypeKind::floating; }

void check(const LoadOptions& options) {
  if (options.dtype && !is_floating(*options.dtype)) {
    throw ArgumentError(
        ErrorCode::unsupported_dtype,
        {text::join("loading as ", to_string(*options.dtype)), "only floating-point tensors are converted, to another such dtype",
         "use f64, f32, bf16, f16 or an f8, or convert the tensors afterwards with to(dtype)"},
        {{"dtype", to_string(*options.dtype)}});
  }
  if (options.threads < 0 || options.threads > kMostCopyThreads) {
    throw ArgumentError(ErrorCode::limit_exceeded,
                        {text::join("loading with ", options.threads, " threads"),
                         text::join("the number must be from 1 to ", kMostCopyThreads, ", or 0 for as many as copies use"),
                         "use a number of processors of this machine"},
                        {{"threads", options.threads}, {"limit", kMostCopyThreads}});
  }
}

// The dtype that the host sends, so that the device converts the rest: decided by the route of a copy between
// them.
DType passed_on(DType from, DType to, const Backend& device) {
  if (from == to || device.properties().abilities.host_access) return to;
  const Shape shape{1};
  const Strides strides{1};
  const Route route = plan_route({Device(), from, shape, strides, backend(Device()).properties().abilities},
                                 {device.device(), to, shape, strides, device.properties().abilities});
  const bool there = std::ranges::any_of(
      route.steps, [](const RouteStep& step) { return step.kind == StepKind::kernel && step.from_dtype != step.to_dtype; });
  return there ? from : to;
}

Storage make_target(const TensorEntry& entry, DType dtype, const AllocatorRef& where, const Site& site) {
  if (!entry.dtype) return empty({entry.size_bytes}, dtype, where, {}, site);
  if (!entry.fortran_order) return empty(entry.shape, dtype, where, {}, site);
  return file::turned(empty(file::reversed(entry.shape), dtype, where, {}, site));
}

// One load, from the options to the report.
class Load {
 public:
  Load(LoadSource& source, const AllocatorRef& where, const LoadOptions& options) : source_(source), where_(where), options_(options) {
    report_.asked_mode = options.mode;
    report_.device = where.device();
    job_.device = &backend(where.device());
  }

  LoadedTensors run(const Site& site) {
    const std::uint64_t began = os::steady_time_ns();
    select();
    choose();
    for (const TensorEntry* entry : chosen_) add(*entry, site);
    bring();
    source_.require_unchanged();
    report_.time_ns = os::steady_time_ns() - began;
    return {std::move(tensors_), std::move(report_)};
  }

 private:
  void select() {
    for (const TensorEntry& entry : source_.entries) {
      if (options_.select && !options_.select(entry)) continue;
      chosen_.push_back(&entry);
      report_.file_bytes = checked_add(report_.file_bytes, entry.size_bytes, "the bytes of all tensors");
    }
    report_.tensors = chosen_.size();
  }

  void take(LoadMode mode, std::string reason) {
    report_.mode = mode;
    report_.mode_reason = std::move(reason);
  }

  void choose() {
    LoadMode wanted = options_.mode;
    std::string reason = "it was asked for";
    if (wanted == LoadMode::automatic) {
      wanted = choose_mode(report_.file_bytes, backend(Device()).memory_info().free_bytes);
      reason =
          wanted == LoadMode::read ? "a file that was read before is in the page cache" : "the page cache could not keep so many bytes";
    }
    if (wanted == LoadMode::map && where_.device() != Device())
      return take(LoadMode::read,
                  text::join("only tensors on cpu can be the mapped file itself, and not those on ", where_.device().to_string()));
    take(wanted, std::move(reason));
    if (wanted == LoadMode::direct) open_direct();
  }

  void open_direct() {
    for (LoadFile& file : source_.files) {
      Result<os::Descriptor> direct = os::reopen_direct(file.descriptor);
      if (!direct) return take(LoadMode::read, text::join(std::string_view(direct.failure().why), " of ", text::quoted(file.path)));
      file.direct = std::move(*direct);
    }
    job_.direct = true;
  }

  void add(const TensorEntry& entry, const Site& site) {
    const DType from = entry.dtype.value_or(DType::u8);
    const DType to = loaded_dtype(entry, options_);
    report_.converted += from == to ? 0 : 1;
    const bool aligned = entry.file_offset % size_bytes(from) == 0;
    if (report_.mode == LoadMode::map && from == to && aligned) {
      tensors_.push_back({entry.name, source_.mapped(entry)});
      ++report_.mapped;
      return;
    }
    tensors_.push_back({entry.name, make_target(entry, to, where_, site)});
    const Storage& made = tensors_.back().storage;
    report_.target_bytes += made.size_bytes();
    job_.tensors.push_back({entry.file, entry.file_offset, made.num_elements(), from, passed_on(from, to, *job_.device), to});
    job_.targets.push_back({entry.name, static_cast<std::byte*>(made.data_ptr())});
  }

  // Small loads use smaller pieces, so that all threads have work.
  static std::size_t piece_bytes(std::size_t total, int threads) noexcept {
    const std::size_t share = total / (static_cast<std::size_t>(threads) * 4);
    return align_down(std::clamp(share, kLeastPieceBytes, kPieceBytes), kPartAlignment);
  }

  // Leases the files with tensors that the host converts, if possible, so that they are converted without being
  // read first.
  void hold_still() {
    std::vector<std::size_t> ends(source_.files.size());
    for (const FileTensor& tensor : job_.tensors) {
      if (tensor.in_file != tensor.from_host) ends[tensor.file] = std::max(ends[tensor.file], tensor.offset + tensor.file_bytes());
    }
    for (std::size_t i = 0; i < ends.size() && !job_.direct; ++i) {
      if (ends[i] == 0) continue;
      Result<os::LeasedFile> held = os::LeasedFile::hold(source_.files[i].descriptor, ends[i]);
      if (held) source_.files[i].still.emplace(std::move(*held));
    }
  }

  void bring() {
    hold_still();
    const int threads = options_.threads == 0 ? copy_threads() : options_.threads;
    std::size_t total = 0;
    for (const FileTensor& tensor : job_.tensors) total += tensor.file_bytes();
    job_.files = std::move(source_.files);
    job_.piece_bytes = source_.piece_bytes != 0 ? source_.piece_bytes : piece_bytes(total, threads);
    job_.plan = plan_load(job_.tensors, job_.piece_bytes);
    if (source_.least_in_place != 0) job_.least_in_place = source_.least_in_place;
    Progress progress(options_.progress, job_.plan.bytes);
    job_.progress = &progress;
    report_.threads = run_load(job_, threads);
    report_.staging_bytes = job_.staging_bytes;
    progress.finish();
  }

  LoadSource& source_;
  const AllocatorRef& where_;
  const LoadOptions& options_;
  std::vector<const TensorEntry*> chosen_;
  LoadJob job_;
  std::vector<NamedTensor> tensors_;
  LoadReport report_;
};

}  // namespace

DType loaded_dtype(const TensorEntry& entry, const LoadOptions& options) noexcept {
  const DType own = entry.dtype.value_or(DType::u8);
  return options.dtype && entry.dtype && is_floating(own) ? *options.dtype : own;
}

LoadMode choose_mode(std::uint64_t file_bytes, std::uint64_t available_bytes) noexcept {
  return file_bytes > available_bytes / 2 && available_bytes != 0 ? LoadMode::direct : LoadMode::read;
}

LoadedTensors load_tensors(LoadSource source, const AllocatorRef& where, const LoadOptions& options, const Site& site) {
  check(options);
  return Load(source, where, options).run(site);
}

}  // namespace berth::internal::file::load
