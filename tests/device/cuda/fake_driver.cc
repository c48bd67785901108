// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

// A driver without a GPU: the entry points that berth's CUDA backend uses, over host memory, with a thread for
// each stream. Built as libcuda.so.1 into a folder of its own, it lets the conformance suites run against the
// backend on any machine. It is strict where the real driver may be lenient: every call needs a current
// context, mappings cover whole handles, copies for which the real driver may block the caller do block, and no
// copy may cross from one registered range of the host into the next.
namespace {

constexpr size_t kUnit = size_t{2} << 20;
constexpr size_t kTotal = size_t{64} << 30;

std::mutex g_mutex;
size_t g_used = 0;
std::map<uintptr_t, size_t> g_reserved, g_plain, g_host;
struct Mapping {
  size_t bytes;
  CUmemGenericAllocationHandle handle;
};
std::map<uintptr_t, Mapping> g_mapped;
struct Physical {
  int descriptor;
  size_t bytes;
  int references;  // the handle's own, and one for each mapping
  bool imported = false;
};
std::map<CUmemGenericAllocationHandle, Physical> g_physical;
CUmemGenericAllocationHandle g_next_handle = 100;
thread_local std::vector<CUcontext> t_contexts;
int g_context = 0;

// With FAKE_CUDA_COUNTS set, prints at exit how many expensive calls for physical memory were made, and what
// they would have cost on an H200: a fixed cost for each handle, plus one for its bytes.
struct Counts {
  size_t created = 0;
  size_t mapped = 0;
  size_t accessed = 0;  // handles, not calls
  size_t unmapped = 0;
  size_t released = 0;
  double us = 0;
  void add(size_t& count, double each, double per_gib, size_t bytes) {
    ++count;
    us += each + per_gib * static_cast<double>(bytes) / static_cast<double>(size_t{1} << 30);
  }
  ~Counts() {
    if (getenv("FAKE_CUDA_COUNTS") != nullptr)
      fprintf(stderr, "created %zu, mapped %zu, accessed %zu, unmapped %zu, released %zu: about %.1f ms\n", created, mapped, accessed,
              unmapped, released, us / 1000);
  }
} g_counts;

bool current() { return !t_contexts.empty(); }
CUcontext the_context() { return reinterpret_cast<CUcontext>(&g_context); }
#define NEED_CONTEXT \
  if (!current()) return CUDA_ERROR_INVALID_CONTEXT

void drop_reference(CUmemGenericAllocationHandle handle) {
  Physical& one = g_physical.at(handle);
  if (--one.references > 0) return;
  close(one.descriptor);
  g_used -= one.bytes;
  g_physical.erase(handle);
}

bool inside(const std::map<uintptr_t, size_t>& ranges, uintptr_t at) {
  auto after = ranges.upper_bound(at);
  return after != ranges.begin() && at - (--after)->first < after->second;
}

// A point in a stream.
struct Point {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  void finish() {
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done; });
  }
  bool query() {
    const std::lock_guard lock(mutex);
    return done;
  }
};

struct Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> items;
  bool closed = false;
  void put(std::function<void()> item) {
    const std::lock_guard lock(mutex);
    items.push_back(std::move(item));
    changed.notify_all();
  }
  void work() {
    for (;;) {
      std::function<void()> item;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return closed || !items.empty(); });
        if (items.empty()) return;
        item = std::move(items.front());
        items.pop_front();
      }
      item();
    }
  }
};

}  // namespace

struct CUstream_st {
  std::shared_ptr<Queue> queue = std::make_shared<Queue>();
  unsigned long long id = 0;
};
struct CUevent_st {
  std::shared_ptr<Point> point;
};

namespace {

CUstream_st* stream_of(CUstream stream) {
  static CUstream_st* const legacy = [] {
    auto* const made = new CUstream_st;
    std::thread([queue = made->queue] { queue->work(); }).detach();
    return made;
  }();
  return stream == nullptr || stream == CU_STREAM_LEGACY ? legacy : stream;
}

bool is_pageable(CUdeviceptr at) {
  const std::lock_guard lock(g_mutex);
  return !inside(g_reserved, at) && !inside(g_plain, at) && !inside(g_host, at);
}

// Whether host memory was registered in several parts, or in part.
bool crosses_a_registration(CUdeviceptr at, size_t bytes) {
  const std::lock_guard lock(g_mutex);
  const auto next = g_host.upper_bound(at);
  if (next != g_host.end() && next->first < at + bytes) return true;
  if (next == g_host.begin()) return false;
  const auto& [first, length] = *std::prev(next);
  return at < first + length && at + bytes > first + length;
}

CUresult run(CUstream stream, std::function<void()> item, bool wait = false) {
  const auto point = std::make_shared<Point>();
  stream_of(stream)->queue->put([item = std::move(item), point] {
    item();
    point->finish();
  });
  if (wait) point->wait();
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult, const char** text) { return *text = "CUDA_ERROR_FAKE", CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult, const char** text) { return *text = "of the driver without a GPU", CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int* count) { return *count = 1, CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* device, int) { return *device = 0, CUDA_SUCCESS; }
CUresult cuDeviceGetName(char* name, int bytes, CUdevice) { return strncpy(name, "no GPU", static_cast<size_t>(bytes)), CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) { return *value = 1, CUDA_SUCCESS; }
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) { return *bytes = kTotal, CUDA_SUCCESS; }
CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) { return *can = 0, CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) { return *context = the_context(), CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext context) { return t_contexts.push_back(context), CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext* context) {
  NEED_CONTEXT;
  *context = t_contexts.back();
  t_contexts.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return std::swap(*mode, t_mode), CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* out, CUdevice) {
  memcpy(out->bytes, "a fake, not GPU", sizeof out->bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemGetInfo(size_t* free, size_t* total) {
  NEED_CONTEXT;
  const std::lock_guard lock(g_mutex);
  *total = kTotal;
  *free = kTotal - g_used;
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr* at, size_t bytes) {
  NEED_CONTEXT;
  const std::lock_guard lock(g_mutex);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > kTotal - g_used) return CUDA_ERROR_OUT_OF_MEMORY;
  *at = reinterpret_cast<CUdeviceptr>(aligned_alloc(512, (bytes + 511) / 512 * 512));
  g_plain[*at] = bytes;
  g_used += bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr at) {
  NEED_CONTEXT;
  const std::lock_guard lock(g_mutex);
  const auto found = g_plain.find(at);
  if (found == g_plain.end()) return CUDA_ERROR_INVALID_VALUE;
  g_used -= found->second;
  g_plain.erase(found);
  free(reinterpret_cast<void*>(at));
  return CUDA_SUCCESS;
}
CUresult cuMemAllocAsync(CUdeviceptr* at, size_t bytes, CUstream) { return cuMemAlloc(at, bytes); }
CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream) {
  NEED_CONTEXT;
  return run(stream, [at] {
    t_contexts.push_back(the_context());
    cuMemFree(at);
    t_contexts.pop_back();
  });
}
CUresult cuMemHostAlloc(void** at, size_t bytes, unsigned) {
  NEED_CONTEXT;
  *at = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  const std::lock_guard lock(g_mutex);
  g_host[reinterpret_cast<uintptr_t>(*at)] = bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemHostRegister(void* at, size_t bytes, unsigned) {
  NEED_CONTEXT;
  const std::lock_guard lock(g_mutex);
  if (inside(g_host, reinterpret_cast<uintptr_t>(at))) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  g_host[reinterpret_cast<uintptr_t>(at)] = bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemHostUnregister(void* at) {
  NEED_CONTEXT;
  const std::lock_guard lock(g_mutex);
  return g_host.erase(reinterpret_cast<uintptr_t>(at)) == 1 ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
CUresult cuMemFreeHost(void* at) {
  cuMemHostUnregister(at);
  free(at);
  return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* host, unsigned) {
  NEED_CONTEXT;
  return *device = reinterpret_cast<CUdeviceptr>(host), CUDA_SUCCESS;
}
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute which, CUdeviceptr at) {
  NEED_CONTEXT;
  const std::lock_guard lock(g_mutex);
  const bool device = inside(g_reserved, at) || inside(g_plain, at);
  if (!device && !inside(g_host, at)) return CUDA_ERROR_INVALID_VALUE;
  if (which == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    *static_cast<unsigned*>(data) = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  else
    *static_cast<int*>(data) = 0;
  return CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange(CUdeviceptr* first, size_t* bytes, CUdeviceptr at) { return *first = at, *bytes = kUnit, CUDA_SUCCESS; }

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  return *bytes = kUnit, CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* at, size_t bytes, size_t alignment, CUdeviceptr, unsigned long long) {
  NEED_CONTEXT;
  if (bytes == 0 || bytes % 4096 != 0 || bytes > (size_t{1} << 46)) return CUDA_ERROR_INVALID_VALUE;
  if (alignment < kUnit) alignment = kUnit;
  void* const start = mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  // The rest of the range is not unmapped: tests are short.
  *at = (reinterpret_cast<uintptr_t>(start) + alignment - 1) / alignment * alignment;
  const std::lock_guard lock(g_mutex);
  g_reserved[*at] = bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes) {
  NEED_CONTEXT;
  const std::lock_guard lock(g_mutex);
  const auto found = g_reserved.find(at);
  if (found == g_reserved.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  const auto mapped = g_mapped.lower_bound(at);
  if (mapped != g_mapped.end() && mapped->first < at + bytes) return CUDA_ERROR_INVALID_VALUE;
  munmap(reinterpret_cast<void*>(at), bytes);
  g_reserved.erase(found);
  return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*, unsigned long long) {
  NEED_CONTEXT;
  const std::lock_guard lock(g_mutex);
  if (bytes == 0 || bytes % kUnit != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > kTotal - g_used) return CUDA_ERROR_OUT_OF_MEMORY;
  const int descriptor = memfd_create("fake", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  g_counts.add(g_counts.created, 13, 19, bytes);
  *handle = g_next_handle++;
  g_physical[*handle] = {descriptor, bytes, 1, false};
  g_used += bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(g_mutex);
  if (g_physical.count(handle) == 0) return CUDA_ERROR_INVALID_VALUE;
  g_counts.add(g_counts.released, 14, 590, g_physical[handle].bytes);
  drop_reference(handle);
  return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long) {
  NEED_CONTEXT;
  const std::lock_guard lock(g_mutex);
  const auto found = g_physical.find(handle);
  if (found == g_physical.end() || found->second.bytes != bytes || offset != 0 || !inside(g_reserved, at) ||
      !inside(g_reserved, at + bytes - 1))
    return CUDA_ERROR_INVALID_VALUE;
  auto after = g_mapped.lower_bound(at);
  if (after != g_mapped.end() && after->first < at + bytes) return CUDA_ERROR_ALREADY_MAPPED;
  if (after != g_mapped.begin() && (--after)->first + after->second.bytes > at) return CUDA_ERROR_ALREADY_MAPPED;
  mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, found->second.descriptor, 0);
  ++found->second.references;
  g_counts.add(g_counts.mapped, 1, 1, bytes);
  g_mapped[at] = {bytes, handle};
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes) {
  NEED_CONTEXT;
  const std::lock_guard lock(g_mutex);
  const auto found = g_mapped.find(at);
  if (found == g_mapped.end() || found->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  g_counts.add(g_counts.unmapped, 19, 21, bytes);
  drop_reference(found->second.handle);
  g_mapped.erase(found);
  return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc*, size_t) {
  NEED_CONTEXT;
  const std::lock_guard lock(g_mutex);
  for (CUdeviceptr next = at; next < at + bytes;) {
    const auto found = g_mapped.find(next);
    if (found == g_mapped.end()) return CUDA_ERROR_INVALID_VALUE;
    g_counts.add(g_counts.accessed, 27, 72, found->second.bytes);
    next += found->second.bytes;
  }
  return mprotect(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType, unsigned long long) {
  NEED_CONTEXT;
  const std::lock_guard lock(g_mutex);
  const auto found = g_physical.find(handle);
  if (found == g_physical.end() || found->second.imported) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int*>(out) = dup(found->second.descriptor);
  return CUDA_SUCCESS;
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* descriptor, CUmemAllocationHandleType) {
  NEED_CONTEXT;
  const std::lock_guard lock(g_mutex);
  const int mine = dup(static_cast<int>(reinterpret_cast<uintptr_t>(descriptor)));
  if (mine < 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t bytes = static_cast<size_t>(lseek(mine, 0, SEEK_END));
  *handle = g_next_handle++;
  g_physical[*handle] = {mine, bytes, 1, true};
  g_used += bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  NEED_CONTEXT;
  if (crosses_a_registration(to, bytes) || crosses_a_registration(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const bool waits = is_pageable(to) || is_pageable(from);
  return run(
      stream, [=] { memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); }, waits);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  NEED_CONTEXT;
  if (to < from + bytes && from < to + bytes) return CUDA_ERROR_INVALID_VALUE;
  return run(stream, [=] { memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  NEED_CONTEXT;
  return run(stream, [=] { memset(reinterpret_cast<void*>(to), value, count); });
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  NEED_CONTEXT;
  if (to % 2 != 0) return CUDA_ERROR_INVALID_VALUE;
  return run(stream, [=] {
    for (size_t i = 0; i < count; ++i) reinterpret_cast<unsigned short*>(to)[i] = value;
  });
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  NEED_CONTEXT;
  if (to % 4 != 0) return CUDA_ERROR_INVALID_VALUE;
  return run(stream, [=] {
    for (size_t i = 0; i < count; ++i) reinterpret_cast<unsigned*>(to)[i] = value;
  });
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  NEED_CONTEXT;
  static std::atomic<unsigned long long> g_next_id{1};
  *stream = new CUstream_st;
  (*stream)->id = g_next_id++;
  std::thread([queue = (*stream)->queue] { queue->work(); }).detach();
  return CUDA_SUCCESS;
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) { return cuStreamCreate(stream, flags); }
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  NEED_CONTEXT;
  return *least = 0, *greatest = -5, CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  NEED_CONTEXT;
  {
    const std::lock_guard lock(stream->queue->mutex);
    stream->queue->closed = true;
    stream->queue->changed.notify_all();
  }
  delete stream;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  NEED_CONTEXT;
  return run(
      stream, [] {}, true);
}
CUresult cuStreamQuery(CUstream) { return CUDA_SUCCESS; }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  NEED_CONTEXT;
  const std::shared_ptr<Point> point = event->point;
  return run(stream, [point] {
    if (point != nullptr) point->wait();
  });
}
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) { return *status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS; }
CUresult cuStreamGetCtx(CUstream, CUcontext* context) { return *context = the_context(), CUDA_SUCCESS; }
CUresult cuStreamGetId(CUstream stream, unsigned long long* id) { return *id = stream_of(stream)->id, CUDA_SUCCESS; }
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned) {
  NEED_CONTEXT;
  return run(stream, [=] {
    const auto* const word = reinterpret_cast<const std::atomic<uint32_t>*>(at);
    while (static_cast<int32_t>(word->load(std::memory_order_acquire) - value) < 0) usleep(20);
  });
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* argument) {
  NEED_CONTEXT;
  return run(stream, [=] { function(argument); });
}

// No GPU, no kernels.
CUresult cuLibraryLoadData(CUlibrary*, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**, unsigned) {
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}
CUresult cuLibraryGetKernel(CUkernel*, CUlibrary, const char*) { return CUDA_ERROR_NOT_FOUND; }
CUresult cuKernelGetFunction(CUfunction*, CUkernel) { return CUDA_ERROR_NOT_FOUND; }
CUresult cuFuncGetAttribute(int*, CUfunction_attribute, CUfunction) { return CUDA_ERROR_NOT_FOUND; }
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**) {
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  NEED_CONTEXT;
  return *event = new CUevent_st, CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) { return delete event, CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent event, CUstream stream) {
  NEED_CONTEXT;
  const auto point = std::make_shared<Point>();
  event->point = point;
  stream_of(stream)->queue->put([point] { point->finish(); });
  return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent event) {
  NEED_CONTEXT;
  return event->point == nullptr || event->point->query() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuEventSynchronize(CUevent event) {
  NEED_CONTEXT;
  const std::shared_ptr<Point> point = event->point;
  if (point != nullptr) point->wait();
  return CUDA_SUCCESS;
}

}  // extern "C"
