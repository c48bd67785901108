// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <string>

#include "base/text.h"
#include "berth/berth.h"
#include "berth/plan.h"

namespace berth::internal::cli {

namespace {

constexpr const char* kMaxMemory = "Memory that reading the file may take (the larger of 40 times its size and 256MiB)";

// CLI11 takes -1 and what does not fit for some other number, and names limits of 309 digits.
CLI::Validator at_least(std::uint64_t least) {
  const auto check = [least](const std::string& text) {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data(), end, number);
    const bool good = error == std::errc() && read == end && number >= least;
    return good ? std::string() : text::join(text::quoted(text), " is not a whole number from ", least, " to ", UINT64_MAX);
  };
  return CLI::Validator(check, "");
}

// CLI11's range takes what is no number for one within it.
CLI::Validator between(double least, double most) {
  const auto check = [=](const std::string& text) {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data(), end, number);
    const bool good = error == std::errc() && read == end && number >= least && number <= most;
    return good ? std::string() : fmt::format("{} is not a number from {} to {}", text::quoted(text), least, most);
  };
  return CLI::Validator(check, "");
}

// An empty name is how a command says that nothing is to be written.
CLI::Validator names_a_file() {
  return CLI::Validator([](const std::string& text) { return text.empty() ? std::string("the path is empty") : std::string(); }, "");
}

}  // namespace

void add_replay_options(CLI::App& app, ReplayCommand& command) {
  app.add_option("TRACE", command.path, "A file that BERTH_TRACE wrote, or lines of op,id,bytes,stream; plain or gzip")->required();
  app.add_option("--device", command.device, "Where to allocate (cpu)");
  app.add_option("--max-memory", command.max_memory, kMaxMemory);
  app.add_option("--strategy", command.strategy, "How: a strategy of berth, or malloc (the device's default)");
  app.add_option("--scale", command.scale, "Divide all sizes by this")->check(at_least(1));
  app.add_option("--threads", command.threads, "How many threads replay it, each a copy of its own")->check(CLI::Range(1, 1024));
  app.add_flag("--touch", command.touch, "Write one byte in every 4,096 of each block");
  app.add_flag("--once", command.once, "Leave out the second run, which gives the percentiles");
  app.add_flag("--compare", command.compare, "Try every strategy, and malloc")->excludes("--strategy");
  app.add_option("--html", command.html, "Write an HTML report, in one file")->check(names_a_file())->excludes("--compare");
  app.add_flag("--json", command.json, "Print JSON");
  app.footer(
      "BERTH_SIM_CAPACITY and BERTH_SIM_PAGE shape the device sim. The time and the memory are of one run, the percentiles of a second.");
}

namespace {

// A line for each strategy or order: its name, and what it does.
template <class Named>
std::string names_and_uses(const Named& all) {
  std::string lines;
  for (const auto& one : all) lines += text::join("  ", one.name, std::string(18 - one.name.size(), ' '), one.does, "\n");
  return lines;
}

}  // namespace

void add_plan_options(CLI::App& app, PlanCommand& command) {
  app.add_option("FILE", command.path,
                 "An ONNX model, lines of id,lower,upper,size (an offset column is ignored), graph text, or JSON; plain or gzip")
      ->required();
  app.add_option("--strategy", command.strategy, "best, offsets, slots, or one by name (best)");
  app.add_option("--order", command.order, "given, best (looks for an order of nodes that needs less), or one by name (given)");
  app.add_option("--match-range", command.match_range, "Slots: how far sizes may differ; 0 reuses none (tries 1 to 16)")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--nodes", command.nodes, "Plan only these, from the first to before the last: 0:12, or 12: for the rest");
  app.add_option("--after", command.after, "The plan (--out) of the nodes before these, on whose memory this one continues");
  app.add_flag("--no-inplace", command.no_inplace, "Give every value bytes of its own");
  const CLI::Range branches(1, 1 << 16);
  app.add_option("--parallel", command.parallel, "Nodes may run at once, in so many colours (1: they run in order)")->check(branches);
  app.add_option("--edges", command.most_edges, "With --parallel: how many edges may be added where that saves memory (0)")
      ->check(at_least(0));
  app.add_option("--colours", command.parallel, "The old name of --parallel")->check(branches)->group("");
  app.add_option("--time-limit", command.time_limit, "Seconds from reading to writing, after which the best so far is taken")
      ->check(between(0, 1e9));
  app.add_option("--max-memory", command.max_memory, kMaxMemory);
  app.add_option("--seed", command.seed, "Seed of the randomized searches (0)")->check(at_least(0));
  app.add_option("--threads", command.threads, "How many threads search (1)")->check(CLI::Range(1, 256));
  app.add_option("--capacity", command.capacity, "Bytes that each arena may have; exits 1 when it does not fit");
  app.add_option("--budget", command.budget, "Bytes it should fit into; exits 1 when it does not, and says what to recompute or to move");
  app.add_option("--bandwidth", command.bandwidth, "With --budget: bytes a second between devices (16GiB)");
  app.add_option("--move-to", command.move_to, "With --budget: the device that values are moved to (cpu:0, or elsewhere:0)");
  app.add_option("--arena", command.arenas, "Memory of the first device, the preferred first: --arena sram=512KiB --arena dram")
      ->take_all();
  app.add_option("--max-chunk", command.max_chunk, "The largest contiguous chunk: arenas that need more are split into several");
  app.add_option("--align", command.align, "Align every value to this at least (1)");
  app.add_option("--bind", command.bind, "Sizes of symbolic dimensions: batch=8,seq=128")->delimiter(',');
  app.add_flag("--allow-unknown", command.allow_unknown, "Plan the rest where shapes stay unknown");
  app.add_flag("--all", command.all, "Run every strategy to its end, also those that cannot win");
  app.add_option("--svg", command.svg, "Write a drawing of the arena over time")->check(names_a_file());
  app.add_option("--html", command.html, "Write an HTML report, in one file")->check(names_a_file());
  app.add_option("--out", command.out, "Write the plan with its graph, for berth verify")->check(names_a_file());
  app.add_option("--storage-ids", command.storage_ids, "Write a graph runtime's file again, with the storage of this plan")
      ->check(names_a_file());
  app.add_flag("--json", command.json, "Print JSON");
  app.add_flag("--full", command.full, "With --json: the location of every value too");
  app.footer("Strategies by name:\n" + names_and_uses(plan_strategies()) + "Orders by name, which --order best tries:\n" +
             names_and_uses(plan_orders()));
}

void add_verify_options(CLI::App& app, VerifyCommand& command) {
  app.add_option("FILE", command.paths, "The plan; several, of ranges that follow one another, are verified together too")->required();
  app.add_option("--max-memory", command.max_memory, kMaxMemory);
  app.add_flag("--json", command.json, "Print JSON");
}

void add_inspect_options(CLI::App& app, InspectCommand& command) {
  app.add_option("FILE", command.path, "A safetensors file, the .json index of a model in several, an .npy or an .npz file")->required();
  app.add_option("--depth", command.depth, "How many parts of a name make a prefix (1)")->check(CLI::Range(1, 100));
  app.add_flag("--all", command.all, "List every tensor, however many there are");
  app.add_flag("--lax", command.lax, "Accept members and dtypes that the format may gain");
  app.add_flag("--json", command.json, "Print JSON");
}

void add_check_options(CLI::App& app, CheckCommand& command) {
  app.add_option("FILE", command.path, "As for berth inspect")->required();
  app.add_flag("--lax", command.lax, "Accept members and dtypes that the format may gain");
  app.add_flag("--json", command.json, "Print JSON");
}

void add_convert_options(CLI::App& app, ConvertCommand& command) {
  app.add_option("IN", command.in, "As for berth inspect")->required();
  app.add_option("OUT", command.out, "NAME.npy, NAME.npz, or any other name for safetensors; replaced in one step")->required();
  app.add_option("--dtype", command.dtype, "What floating-point tensors become: bf16, f16, f32, … (as they are)");
  app.add_option("--align", command.align, "What the data of a safetensors file is aligned to (4096)");
  app.add_flag("--lax", command.lax, "Accept members and dtypes that the format may gain");
  app.add_flag("--json", command.json, "Print JSON");
}

namespace {

void add_report_options(CLI::App& app, SnapshotCommand& command) {
  app.add_option("--top", command.top, "How many lines (20)")->check(at_least(0));
  app.add_flag("--json", command.json, "Print JSON");
}

}  // namespace

void add_snapshot_show_options(CLI::App& app, SnapshotCommand& command) {
  app.add_option("FILE", command.path, "The snapshot; plain or gzip")->required();
  app.add_flag("--csv", command.csv, "Print every block as comma-separated values");
  app.add_option("--max-memory", command.max_memory, kMaxMemory);
  add_report_options(app, command);
}

void add_snapshot_diff_options(CLI::App& app, SnapshotCommand& command) {
  app.add_option("BEFORE", command.path, "The earlier one")->required();
  app.add_option("AFTER", command.other, "The later one")->required();
  app.add_option("--max-memory", command.max_memory, kMaxMemory);
  add_report_options(app, command);
}

void add_snapshot_html_options(CLI::App& app, SnapshotCommand& command) {
  app.add_option("FILE", command.path, "The snapshot; plain or gzip")->required();
  app.add_option("--out", command.out, "The report (beside the snapshot, with the ending .html)")->check(names_a_file());
  app.add_option("--max-memory", command.max_memory, kMaxMemory);
}

void add_top_options(CLI::App& app, TopCommand& command) {
  app.add_option("PID|NAME", command.target, "A process, or all of a program; left out: all of this user");
  app.add_option("--every", command.every, "Seconds between updates (1)")->check(between(0.1, 3600));
  app.add_flag("--once", command.once, "Print once and exit; the default when standard output is not a terminal");
  app.add_flag("--json", command.json, "Print JSON, once");
  app.footer("A process is shown when it was started with BERTH_LIVE=1.");
}

void add_bench_copy_options(CLI::App& app, BenchCopyCommand& command) {
  app.add_option("--device", command.device, "Copies on, from and to a device instead of the host's: --device cuda:0");
  app.add_flag("--full", command.full, "Every pair of dtypes in four layouts too, beside memcpy: a few minutes more");
  app.add_option("--threads", command.threads, "How many threads each may use (BERTH_THREADS, or one for each processor)")
      ->check(CLI::Range(1, kMostCopyThreads));
  app.add_option("--only", command.only, "Only copies whose names have one of these prefixes: --only transpose,batch")->delimiter(',');
  app.add_flag("--no-torch", command.no_torch, "Leave out the comparison with PyTorch");
  app.add_option("--torch-timeout", command.torch_timeout, "Seconds that PyTorch may take to start, or for one answer (120)")
      ->check(between(0.001, 1e6));
  app.add_flag("--quick", command.quick, "Small sizes: shows that it works, and measures nothing");
  app.add_flag("--json", command.json, "Print JSON");
  app.footer(
      "Takes about 3 GiB of memory, and PyTorch as much again. BERTH_PYTHON names the Python that has it (python3). Nothing else may run "
      "meanwhile.");
}

void add_bench_alloc_options(CLI::App& app, BenchAllocCommand& command) {
  app.add_option("--device", command.device, "The device (cpu)");
  app.add_option("--strategy", command.strategy, "The allocator, as in pool:8GiB; left out: the device's default");
  app.add_flag("--stream", command.stream, "Allocate on a stream of the device");
  app.add_flag("--quick", command.quick, "Few operations: shows that it works, and measures nothing");
  app.add_flag("--json", command.json, "Print JSON");
}

void add_bench_load_options(CLI::App& app, BenchLoadCommand& command) {
  app.add_option("FILE", command.file, "A safetensors file, or the index of several; left out: one is made, and removed");
  app.add_option("--size", command.size, "Bytes of the file that is made (2GiB)");
  app.add_option("--device", command.device, "Where to (cpu)");
  app.add_option("--mode", command.mode, "auto, map, read or direct (auto)");
  app.add_option("--dtype", command.dtype, "What the load that converts makes of floating-point tensors (bf16)");
  app.add_option("--threads", command.threads, "How many threads (BERTH_THREADS, or one for each processor)")
      ->check(CLI::Range(1, kMostCopyThreads));
  app.add_option("--rounds", command.rounds, "How many times each way is measured, in turn (5)")->check(CLI::Range(1, 1000));
  app.add_flag("--cold", command.cold, "Drop the file from the page cache before each measurement, and read it from the disk");
  app.add_flag("--quick", command.quick, "A small file: shows that it works, and measures nothing");
  app.add_flag("--json", command.json, "Print JSON");
}

}  // namespace berth::internal::cli
