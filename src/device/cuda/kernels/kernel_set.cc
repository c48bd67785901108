// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels/kernel_set.h"

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "base/text.h"
#include "device/cuda/driver.h"
#include "device/cuda/kernels/images.h"
#include "device/cuda/kernels/pairs.h"
#include "device/cuda/kernels/tasks.h"

namespace berth::internal::device::cuda {

namespace {

constexpr Failure kNoCode{ErrorCode::unsupported, 0, "berth was built without code for this device"};

Status status_of(const char* call, CUresult result) noexcept {
  if (result == CUDA_SUCCESS) return {};
  const bool no_code = result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
                       result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND || result == CUDA_ERROR_INVALID_IMAGE;
  return no_code ? Status(kNoCode) : Status(failure_of(call, result));
}

struct Named {
  DType dtype;
  const char* name;
};
#define BERTH_CUDA_NAMED(unused, dtype) Named{DType::dtype, #dtype},
constexpr Named kRowDTypes[] = {BERTH_CUDA_ROW_DTYPES(BERTH_CUDA_NAMED, )};
constexpr Named kTileDTypes[] = {BERTH_CUDA_TILE_DTYPES(BERTH_CUDA_NAMED, )};
constexpr Named kMovedDTypes[] = {BERTH_CUDA_MOVED_DTYPES(BERTH_CUDA_NAMED)};
#undef BERTH_CUDA_NAMED

// Finds the kernels of images by their names, until one is not found.
class Finder {
 public:
  explicit Finder(KernelSet& set) noexcept : set_(set) {}

  // The image that the following kernels are in. It stays in the driver until the process ends.
  void open(const unsigned char* image) noexcept {
    if (!done_) return;
    CUlibraryOption options[] = {CU_LIBRARY_BINARY_IS_PRESERVED};  // the driver needs no copy of it
    void* values[] = {nullptr};
    done_ = status_of("cuLibraryLoadData", driver().cuLibraryLoadData(&library_, image, nullptr, nullptr, 0, options, values, 1));
  }

  void find(const std::string& name, CUkernel& kernel) {
    if (!done_) return;
    done_ = status_of("cuLibraryGetKernel", driver().cuLibraryGetKernel(&kernel, library_, name.c_str()));
    if (done_) set_.all.push_back(kernel);
  }

  void find_pair(std::string_view family, const Named& from, const Named& to, KernelSet::Pairs& pairs) {
    find(text::join(family, '_', std::string_view(from.name), '_', std::string_view(to.name)),
         pairs[static_cast<std::size_t>(from.dtype)][static_cast<std::size_t>(to.dtype)]);
  }

  const Status& done() const noexcept { return done_; }

 private:
  KernelSet& set_;
  CUlibrary library_ = nullptr;
  Status done_;
};

void find_rows(Finder& finder, KernelSet& set) {
  const auto from_to_all = [&](const Named& from) {
    for (const Named& to : kRowDTypes) {
      if (has_rows(from.dtype, to.dtype)) finder.find_pair("rows", from, to, set.rows);
    }
  };
  finder.open(berth_cuda_image_rows);
  for (const Named& from : kRowDTypes) {
    if (info(from.dtype).kind == DTypeKind::floating) from_to_all(from);
  }
  finder.open(berth_cuda_image_rows_integers);
  for (const Named& from : kRowDTypes) {
    if (info(from.dtype).kind != DTypeKind::floating) from_to_all(from);
  }
}

void find_tiles(Finder& finder, KernelSet& set) {
  finder.open(berth_cuda_image_tiles);
  for (const Named& from : kTileDTypes) {
    for (const Named& to : kTileDTypes) {
      if (has_tiles(from.dtype, to.dtype)) finder.find_pair("tiles", from, to, set.tiles);
    }
  }
  for (const Named& moved : kMovedDTypes) finder.find_pair("tiles", moved, moved, set.tiles);
}

Status find_all(KernelSet& set) {
  Finder finder(set);
  find_rows(finder, set);
  find_tiles(finder, set);
  finder.open(berth_cuda_image_elements);
  for (std::size_t i = 0; i < set.moves.size(); ++i) finder.find(text::join("moves_", std::size_t{1} << i), set.moves[i]);
  finder.find("convert_elements", set.conversions);
  finder.open(berth_cuda_image_fill);
  finder.find("fill_vectors", set.fill);
  finder.open(berth_cuda_image_gather);
  finder.find("gather_parts", set.gather);
  return finder.done();
}

}  // namespace

Result<const KernelSet*> KernelSet::get() noexcept {
  static std::atomic<const KernelSet*> g_set{nullptr};
  if (const KernelSet* const known = g_set.load(std::memory_order_acquire)) return known;
  if (driver_state().devices == 0) return Failure{ErrorCode::unsupported, 0, "there is no CUDA device"};
  // Two threads may load it concurrently, and one of the two results stays unused.
  try {
    auto made = std::make_unique<KernelSet>();
    if (const Status found = find_all(*made); !found) return found.failure();
    const KernelSet* expected = nullptr;
    if (g_set.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) return made.release();
    return expected;
  } catch (const std::bad_alloc&) {
    return Failure{ErrorCode::out_of_memory, 0, "no heap for the table of kernels"};
  }
}

Status load_kernels() noexcept {
  const Result<const KernelSet*> set = KernelSet::get();
  if (!set) return set.failure();
  for (const CUkernel kernel : (*set)->all) {
    CUfunction loaded = nullptr;
    int registers = 0;
    // Lazy loading ends where a property of the code is asked for.
    if (const Status found = status_of("cuKernelGetFunction", driver().cuKernelGetFunction(&loaded, kernel)); !found) return found;
    const CUresult result = driver().cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, loaded);
    if (const Status known = status_of("cuFuncGetAttribute", result); !known) return known;
  }
  return {};
}

Status launch(CUkernel kernel, std::uint64_t blocks, const void* task, StreamHandle stream) noexcept {
  if (blocks == 0) return {};
  if (blocks > 0x7fffffffU) return Failure{ErrorCode::unsupported, 0, "the copy has more parts than a launch can have"};
  void* parameters[] = {const_cast<void*>(task)};
  const CUresult result = driver().cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), static_cast<unsigned>(blocks), 1, 1, kThreads, 1, 1,
                                                  0, stream, parameters, nullptr);
  return status_of("cuLaunchKernel", result);
}

}  // namespace berth::internal::device::cuda
