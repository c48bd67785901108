// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/driver.h"

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "base/text.h"
#include "os/lock/mutex.h"
#include "os/process/library.h"
#include "os/system.h"

namespace berth::internal::device::cuda {

namespace {

#define BERTH_CUDA_TEXT_OF(name) #name
#define BERTH_CUDA_TEXT(name) BERTH_CUDA_TEXT_OF(name)  // after the header's macros

template <class Function>
bool find(void* library, const char* name, Function& function, std::string& missing) {
  void* const found = os::find_symbol(library, name);
  if (found == nullptr) missing = name;
  std::memcpy(&function, &found, sizeof(found));  // object to function pointer, as POSIX allows
  return found != nullptr;
}

// The name of the first entry point that the library lacks; empty when it has all.
std::string load_entries(void* library, Driver& driver) {
  std::string missing;
#define BERTH_CUDA_FIND(name) \
  if (!find(library, BERTH_CUDA_TEXT(name), driver.name, missing)) return missing;
  BERTH_CUDA_ENTRIES(BERTH_CUDA_FIND)
#undef BERTH_CUDA_FIND
  return missing;
}

std::string version_text(int version) { return text::join(version / 1000, '.', version % 1000 / 10); }

// Initializes the driver and fills in the rest of the state. Returns why there is no device.
std::string count_devices(DriverState& state) {
  const Driver& driver = state.driver;
  if (const CUresult result = driver.cuInit(0); result != CUDA_SUCCESS) {
    if (result == CUDA_ERROR_NO_DEVICE) return "the NVIDIA driver finds no device (CUDA_VISIBLE_DEVICES may hide them)";
    const char* name = nullptr;
    if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
    return text::join("the NVIDIA driver does not start: cuInit returns ", std::string_view(name));
  }
  if (driver.cuDriverGetVersion(&state.version) != CUDA_SUCCESS) state.version = 0;
  int count = 0;
  if (driver.cuDeviceGetCount(&count) != CUDA_SUCCESS || count <= 0) return "the NVIDIA driver finds no device";
  state.devices = count;
  return {};
}

std::unique_ptr<DriverState> look_for_driver() {
  auto state = std::make_unique<DriverState>();
  void* const library = os::open_library("libcuda.so.1");
  if (library == nullptr) {
    state->why_none = "the machine has no NVIDIA driver: libcuda.so.1 is not found";
    return state;
  }
  if (const std::string missing = load_entries(library, state->driver); !missing.empty()) {
    state->why_none = text::join("the NVIDIA driver is too old: it has no ", missing, "; berth needs that of CUDA ",
                                 version_text(CUDA_VERSION / 1000 * 1000), " or later");
    return state;
  }
  state->why_none = count_devices(*state);
  return state;
}

struct Texts {
  os::Mutex mutex;
  std::map<std::pair<const char*, CUresult>, std::string> known BERTH_GUARDED_BY(mutex);
};

Texts& texts() {
  static auto* const made = new Texts;  // never destroyed: failures may be read at any time
  return *made;
}
[[maybe_unused]] const Texts& g_texts_at_load = texts();

std::string describe(const char* call, CUresult result) {
  const char* name = nullptr;
  const char* meaning = nullptr;
  const Driver& known = driver();
  if (known.cuGetErrorName == nullptr || known.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
  if (known.cuGetErrorString == nullptr || known.cuGetErrorString(result, &meaning) != CUDA_SUCCESS || meaning == nullptr) meaning = "";
  return text::join(std::string_view(call), ": ", std::string_view(name), " = ", static_cast<int>(result), " (", std::string_view(meaning),
                    ')');
}

ErrorCode code_of(CUresult result) noexcept {
  if (is_shut_down(result) || is_fatal(result)) return ErrorCode::device_lost;
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY: return ErrorCode::out_of_memory;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE: return ErrorCode::invalid_argument;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_CAPTURED_EVENT: return ErrorCode::unsupported;
    default: return ErrorCode::device_error;
  }
}

}  // namespace

const DriverState& driver_state() {
  static std::atomic<const DriverState*> g_state{nullptr};
  if (const DriverState* const known = g_state.load(std::memory_order_acquire)) return *known;
  // Two threads may load it concurrently; both get the same result. There is no lock, so that no fork can occur
  // while one is held.
  std::unique_ptr<DriverState> made = look_for_driver();
  const DriverState* expected = nullptr;
  if (g_state.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *expected;
}

bool is_fatal(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE: return true;
    default: return false;
  }
}

Failure failure_of(const char* call, CUresult result) noexcept {
  Failure failure{code_of(result), 0, call};  // the call's name alone, should the heap be exhausted
  try {
    std::string text = describe(call, result);
    Texts& all = texts();
    const os::Lock lock(all.mutex);
    // The nodes of a map do not move.
    failure.why = all.known.try_emplace({call, result}, std::move(text)).first->second.c_str();
  } catch (const std::bad_alloc&) {
  }
  return failure;
}

}  // namespace berth::internal::device::cuda
