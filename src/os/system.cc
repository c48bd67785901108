// SPDX-License-Identifier: Apache-2.0
#include "os/system.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "os/inject.h"
#include "os/memory/page_map.h"
#include "os/process/no_cancel.h"

namespace berth::internal::os {

namespace {

std::string first_line(const std::string& path) {
  const NoCancel whole;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string whole_file(const char* path) {
  const NoCancel whole;
  std::ifstream file(path);
  std::stringstream buffer;
  buffer << file.rdbuf();
  return buffer.str();
}

std::optional<std::size_t> number_in(const std::string& path) {
  const std::string line = first_line(path);
  std::size_t value = 0;
  const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc() || rest == line.data()) return std::nullopt;  // "max" means no limit
  return value;
}

// The value of "Name:   12345 kB" in /proc/meminfo or /proc/self/status, in bytes.
std::size_t kilobytes_of(std::string_view content, std::string_view name) {
  const std::size_t found = content.find(name);
  if (found == std::string_view::npos) return 0;
  std::size_t at = found + name.size();
  while (at < content.size() && (content[at] == ' ' || content[at] == '\t' || content[at] == ':')) ++at;
  std::size_t kilobytes = 0;
  std::from_chars(content.data() + at, content.data() + content.size(), kilobytes);
  return kilobytes * 1024;
}

// Finds the tightest limit on the path from `group` up to the root of the hierarchy.
void tighten(std::optional<CgroupMemory>& tightest, const std::string& hierarchy, std::string group, const char* limit, const char* usage,
             std::size_t machine_bytes) {
  while (true) {
    const std::string folder = hierarchy + (group == "/" ? "" : group) + "/";
    const auto bytes = number_in(folder + limit);
    // Version 1 writes "no limit" as a huge number.
    if (bytes && (*bytes < machine_bytes || machine_bytes == 0) && (!tightest || *bytes < tightest->limit_bytes)) {
      tightest = CgroupMemory{*bytes, number_in(folder + usage).value_or(0)};
    }
    const std::size_t slash = group.find_last_of('/');
    if (group == "/" || slash == std::string::npos) return;
    group.resize(slash);
  }
}

}  // namespace

HostMemory host_memory() {
  const std::string content = whole_file("/proc/meminfo");
  const HostMemory found{kilobytes_of(content, "MemTotal"), kilobytes_of(content, "MemAvailable")};
  struct sysinfo machine {};
  if (found.total_bytes != 0 || sysinfo(&machine) != 0) return found;  // else there is no /proc
  return {machine.totalram * machine.mem_unit, (machine.freeram + machine.bufferram) * machine.mem_unit};
}

ResidentMemory resident_memory() {
  const std::string content = whole_file("/proc/self/status");
  return {kilobytes_of(content, "VmRSS"), kilobytes_of(content, "VmHWM")};
}

bool reset_peak_resident() {
  const NoCancel whole;
  std::ofstream file("/proc/self/clear_refs");
  file << '5' << std::flush;  // see proc(5)
  return file.good();
}

// Each mapping is a line "begin-end permissions ...", in hexadecimal, followed by its fields as lines
// "Name:  12345 kB".
std::optional<std::size_t> resident_bytes(const void* address, std::size_t bytes, const std::string& folder) {
  const NoCancel whole;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream mappings(folder + "/smaps");
  if (!mappings) return std::nullopt;
  PageMap pages((folder + "/pagemap").c_str());
  std::size_t total = 0;
  std::uintptr_t first = 0;  // of the mapping, the part inside the range
  std::uintptr_t last = 0;
  bool is_whole = true;
  for (std::string line; std::getline(mappings, line);) {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    const char* const end = line.data() + line.size();
    const auto [dash, error] = std::from_chars(line.data(), end, from, 16);
    const bool names_a_mapping = error == std::errc() && dash != end && *dash == '-';
    if (names_a_mapping && std::from_chars(dash + 1, end, to, 16).ec == std::errc()) {
      first = std::max(from, begin);
      last = std::max(first, std::min(to, begin + bytes));
      is_whole = first == from && last == to;
    } else if (const std::size_t resident = line.starts_with("Rss:") ? kilobytes_of(line, "Rss") : 0; resident != 0) {
      std::size_t present = 0;
      const bool known = !is_whole && last == pages.for_each_run(first, last, PageMap::kPresent,
                                                                 [&](auto from_byte, auto to_byte) { present += to_byte - from_byte; });
      total += known ? present : std::min(last - first, resident);
    }
  }
  return total;
}

std::optional<CgroupMemory> cgroup_memory(const std::string& root) {
  const NoCancel whole;
  std::optional<CgroupMemory> tightest;
  const std::size_t machine = host_memory().total_bytes;
  std::ifstream file(root + "/proc/self/cgroup");
  // Each line is "number:controllers:path"; version 2 has the number 0 and no controllers.
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      tighten(tightest, root + "/sys/fs/cgroup", group, "memory.max", "memory.current", machine);
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      tighten(tightest, root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes", machine);
    }
  }
  return tightest;
}

std::string kernel_release() {
  utsname names{};
  return uname(&names) == 0 ? names.release : "";
}

bool kernel_at_least(int major, int minor) {
  int have_major = 0;
  int have_minor = 0;
  if (std::sscanf(kernel_release().c_str(), "%d.%d", &have_major, &have_minor) != 2) return false;
  return have_major != major ? have_major > major : have_minor >= minor;
}

std::string cpu_model() {
  const NoCancel whole;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  }
  return "";  // ARM64 kernels give part numbers only
}

bool cpu_rounds_to_bf16() noexcept {
#if defined(__aarch64__)
  constexpr unsigned long kBf16 = 1UL << 14;  // HWCAP2_BF16, which older headers lack
  return (getauxval(AT_HWCAP2) & kBf16) != 0;
#else
  return false;
#endif
}

bool cpu_computes_in_f16() noexcept {
#if defined(__aarch64__)
  constexpr unsigned long kHalf = 1UL << 10;  // HWCAP_ASIMDHP
  return (getauxval(AT_HWCAP) & kHalf) != 0;
#else
  return false;
#endif
}

int cpu_count() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

std::vector<int> numa_nodes() {
  // "0-1,3"
  const std::string list = first_line("/sys/devices/system/node/has_memory");
  std::vector<int> nodes;
  const char* at = list.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    const long first = std::strtol(at, &end, 10);
    if (end == at) break;
    long last = first;
    if (*end == '-') last = std::strtol(end + 1, &end, 10);
    for (long node = first; node <= last; ++node) nodes.push_back(static_cast<int>(node));
    at = *end == ',' ? end + 1 : end;
  }
  if (nodes.empty()) nodes.push_back(0);
  return nodes;
}

std::string huge_page_mode() {
  const std::string line = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']');
  return open == std::string::npos || close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

std::optional<std::size_t> locked_memory_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

bool has_proc() noexcept { return !must_fail("access") && access("/proc/self/fd", X_OK) == 0; }

bool library_loads(const char* name) noexcept {
  const NoCancel whole;
  void* const handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

const char* environment_text(const char* name) noexcept {
  const char* const value = secure_getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

std::optional<std::string> environment(const char* name) {
  const char* const value = environment_text(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::uint64_t steady_time_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

bool is_terminal(int descriptor) noexcept { return isatty(descriptor) == 1; }

int terminal_width(int descriptor) noexcept {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string program_name() { return program_invocation_short_name == nullptr ? "" : program_invocation_short_name; }
int process_id() noexcept { return getpid(); }

std::uint64_t process_space() noexcept {
  struct stat found {};
  return stat("/proc/self/ns/pid", &found) == 0 ? static_cast<std::uint64_t>(found.st_ino) : 0;
}

}  // namespace berth::internal::os
