// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Properties of this machine and process, as the kernel reports them. Nothing is cached; nothing here throws
// but bad_alloc. Where a file is missing (other kernels, containers) the answer is "unknown", never a guess.
// Any thread.
namespace berth::internal::os {

struct HostMemory {
  std::size_t total_bytes = 0;      // of the machine
  std::size_t available_bytes = 0;  // without swapping, as the kernel estimates it
};
HostMemory host_memory();

struct ResidentMemory {
  std::size_t now_bytes = 0;   // resident set of this process; 0 when unknown
  std::size_t peak_bytes = 0;  // its peak since the process began, or since reset_peak_resident()
};
ResidentMemory resident_memory();
bool reset_peak_resident();  // false where the kernel does not allow it

// The resident bytes of an address range; nothing when unknown. A mapping that extends beyond the range counts for
// its pages inside, or where pagemap cannot be read for at most the part inside. `folder` replaces /proc/self in tests.
std::optional<std::size_t> resident_bytes(const void* address, std::size_t bytes, const std::string& folder = "/proc/self");

struct CgroupMemory {
  std::size_t limit_bytes = 0;
  std::size_t used_bytes = 0;
};
// The tightest memory limit of this process's cgroup and its ancestors (v2 or v1); nothing when there is none.
// `root` is prepended to /proc and /sys, for tests.
std::optional<CgroupMemory> cgroup_memory(const std::string& root = "");

std::string kernel_release();  // "6.1.0-18-arm64"
bool kernel_at_least(int major, int minor);
std::string cpu_model();                                    // "" when unknown
int cpu_count() noexcept;                                   // that this process may use
bool cpu_rounds_to_bf16() noexcept;                         // ARM64: has the instruction BFCVTN
bool cpu_computes_in_f16() noexcept;                        // ARM64: has f16 SIMD arithmetic
std::vector<int> numa_nodes();                              // with memory; {0} when unknown
std::string huge_page_mode();                               // "always", "madvise", "never" or ""
std::optional<std::size_t> locked_memory_limit() noexcept;  // nothing: unlimited
bool has_proc() noexcept;                                   // whether /proc is mounted, with this process in it
bool library_loads(const char* name) noexcept;              // whether dlopen succeeds, e.g. libcuda.so.1

// An environment variable; nothing when it is unset or empty, nor in a program that has more rights than the user
// who started it (set-user, file capabilities): what is in its environment is that user's. Everything in berth
// asks here. Call it early: it races with setenv in other threads.
std::optional<std::string> environment(const char* name);
const char* environment_text(const char* name) noexcept;  // the same without a copy; nullptr: nothing

std::uint64_t steady_time_ns() noexcept;
bool is_terminal(int descriptor) noexcept;
int terminal_width(int descriptor) noexcept;  // 80 when unknown
int process_id() noexcept;
std::uint64_t process_space() noexcept;  // identifies the pid namespace; 0 when unknown
std::string program_name();              // of this process: the name of its executable

}  // namespace berth::internal::os
