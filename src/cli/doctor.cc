// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/text.h"
#include "berth/berth.h"
#include "berth/extend.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "os/file/shared_file.h"
#include "os/memory/memory.h"
#include "os/system.h"

namespace berth::internal::cli {

namespace {

enum class Verdict { good, limited, missing };

struct Finding {
  std::string name;
  Verdict verdict;
  std::string found;
  std::string help;  // empty when all is well
};

Finding check_kernel() {
  const bool enough = os::kernel_at_least(5, 15);
  return {"kernel", enough ? Verdict::good : Verdict::limited, os::kernel_release(),
          enough ? "" : "berth is tested on Linux 5.15 and later; moving pages needs 5.7"};
}

Finding check_proc() {
  if (os::has_proc()) return {"/proc", Verdict::good, "mounted", ""};
  return {"/proc", Verdict::limited,
          "not mounted: mappings are not counted, the limit of the control group is not seen, nothing can be shared",
          "mount -t proc proc /proc"};
}

Finding check_memory() {
  const MemoryInfo memory = backend(Device()).memory_info();
  if (memory.total_bytes == 0)
    return {"memory", Verdict::limited, "the system does not say how much there is", "mount /proc, or let the sandbox allow sysinfo"};
  return {"memory", Verdict::good,
          fmt::format("{} free of {}{}", text::bytes(memory.free_bytes), text::bytes(memory.total_bytes),
                      memory.limited ? ", limited by the control group" : ""),
          ""};
}

Finding check_huge_pages() {
  const std::string mode = os::huge_page_mode();
  if (os::huge_page_bytes() != 0) return {"huge pages", Verdict::good, fmt::format("{}, {}", mode, text::bytes(os::huge_page_bytes())), ""};
  return {"huge pages", Verdict::limited, mode.empty() ? "not offered by this kernel" : mode,
          "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"};
}

Finding check_locked_memory() {
  const auto limit = os::locked_memory_limit();
  if (!limit) return {"locked memory", Verdict::good, "unlimited", ""};
  return {"locked memory", Verdict::limited, text::bytes(*limit), "ulimit -l unlimited, for large pinned buffers on a GPU machine"};
}

Finding check_numa() {
  const std::size_t nodes = os::numa_nodes().size();
  return {"NUMA", Verdict::good, count_of(nodes, "node"), nodes == 1 ? "" : "BERTH_CPU_NODE=N takes memory from one node"};
}

Finding check_cuda() {
  for (const KindInfo& kind : device_kinds()) {
    if (kind.name == "cuda" && kind.count == 0)
      return {"cuda", Verdict::limited, kind.unavailable_reason, "host and simulated devices work without it"};
  }
  return {"cuda", Verdict::good, "available", ""};
}

std::string text_of(const Failure& failure) {
  return failure.os_error == 0 ? failure.why : fmt::format("{}: {}", failure.why, std::strerror(failure.os_error));
}

// Commits and moves a page, as the pools do.
Finding check_address_ranges() {
  // `help` is for want of memory.
  const auto missing = [](const Failure& failure, const char* help) -> Finding {
    const bool is_memory = failure.code == ErrorCode::out_of_memory;
    return {"address ranges", Verdict::missing, text_of(failure), is_memory ? help : "let the sandbox allow that call"};
  };
  Backend& cpu = backend(Device());
  const std::size_t page = cpu.properties().unit_bytes;
  const Result<void*> range = cpu.reserve(2 * page, page);
  if (!range) return missing(range.failure(), "raise the address-space limit: ulimit -v unlimited");
  auto* const first = static_cast<std::byte*>(*range);
  const Status committed = cpu.commit(first, page);
  const Status moved = committed ? cpu.move(first, first + page, page) : committed;
  (void)cpu.release(*range, 2 * page).ok();
  if (!committed) return missing(committed.failure(), "free memory, or lift the overcommit limit: sysctl vm.overcommit_memory");
  if (!moved)
    return {"address ranges", Verdict::limited, text_of(moved.failure()), "needs Linux 5.7; without it berth releases pages instead"};
  return {"address ranges", Verdict::good, "reserve, commit and move work", ""};
}

// Checks a device and its allocator, as a program would first use them.
Finding check_device(Device device) {
  default_allocator(device)->deallocate(default_allocator(device)->allocate({.bytes = 64}));
  return {device.to_string(), Verdict::good, default_allocator(device)->settings(), ""};
}

Finding check_random() {
  std::uint64_t word = 0;
  const Status drawn = os::random_bytes(&word, sizeof word);
  if (drawn) return {"random bytes", Verdict::good, "available", ""};
  return {"random bytes", Verdict::missing, text_of(drawn.failure()),
          "let the sandbox allow getrandom: new files and shared storages get their names from it"};
}

Finding check_threads() {
  const Stream stream = make_stream("cpu");
  stream.enqueue([] {});
  stream.synchronize();
  return {"threads", Verdict::good, "can be started", ""};
}

// Within this process, but in the way in which others take part.
Finding check_sharing() {
  const Storage shared = zeros({1}, DType::u8, "shared");
  (void)import_ticket(export_ticket(shared));
  return {"sharing", Verdict::good, "storages can be passed to other processes", ""};
}

Finding check_names() {
  create_shared("", {1}, DType::u8).close();
  return {"shared names", Verdict::good, "storages can be shared by name", ""};
}

// A check that throws is reported by its error.
template <class Check>
Finding examine_one(std::string name, Check check, Verdict otherwise = Verdict::missing) {
  try {
    return check();
  } catch (const Error& error) {
    // Who reads this has asked doctor already.
    const bool asks_doctor = error.help().find("berth doctor") != std::string::npos;
    return {std::move(name), otherwise, error.asked() + ": " + error.why(),
            asks_doctor ? "let the sandbox allow that call, or raise the limit that refused it" : error.help()};
  }
}

std::vector<Finding> examine() {
  std::vector<Finding> findings = {check_kernel(), check_huge_pages(), check_locked_memory(), check_numa(),
                                   check_cuda(),   check_proc(),       check_random()};
  findings.push_back(examine_one("memory", check_memory));
  findings.push_back(examine_one("address ranges", check_address_ranges));
  findings.push_back(examine_one("threads", check_threads));
  for (const Device device : all_devices()) findings.push_back(examine_one(device.to_string(), [&] { return check_device(device); }));
  findings.push_back(examine_one("sharing", check_sharing));
  findings.push_back(examine_one("shared names", check_names, Verdict::limited));  // everything else works without
  return findings;
}

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::good: return "good";
    case Verdict::limited: return "limited";
    case Verdict::missing: return "missing";
  }
  return "";
}

std::string mark(Verdict verdict) {
  switch (verdict) {
    case Verdict::good: return paint(Mood::good, "✔");
    case Verdict::limited: return paint(Mood::warning, "!");
    case Verdict::missing: return paint(Mood::bad, "✘");
  }
  return "";
}

std::string report_json(const std::vector<Finding>& findings, bool works) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().member("version", version()).member("works", works).key("findings").begin_array();
  for (const Finding& finding : findings) {
    json.begin_object()
        .member("name", finding.name)
        .member("verdict", word(finding.verdict))
        .member("found", finding.found)
        .member("help", finding.help)
        .end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string report_table(const std::vector<Finding>& findings, bool works) {
  Table table({{""}, {"what"}, {"found"}});
  for (const Finding& finding : findings) table.add({mark(finding.verdict), finding.name, text::printable(finding.found)});
  std::string out = table.to_string();
  for (const Finding& finding : findings) {
    if (!finding.help.empty()) out += fmt::format("  help: {}: {}\n", finding.name, finding.help);
  }
  return out + (works ? paint(Mood::good, "  berth works here\n") : paint(Mood::bad, "  berth does not work here: see what is marked ✘\n"));
}

}  // namespace

Exit run_doctor(bool json) {
  const std::vector<Finding> findings = examine();
  bool works = true;
  for (const Finding& finding : findings) works = works && finding.verdict != Verdict::missing;
  print(json ? report_json(findings, works) : report_table(findings, works));
  return works ? Exit::ok : Exit::no;
}

}  // namespace berth::internal::cli
