// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "berth/plan/plan.h"
#include "cli/output.h"

// The subcommands. Each prints a human-readable table, or with `json` one JSON value, and returns the exit
// code. One thread.
namespace berth::internal::cli {

Exit run_devices(bool json);
Exit run_doctor(bool json);
Exit run_tour();
Exit run_tour_guest(const std::string& name);
Exit run_shm_list(bool json);
Exit run_shm_reap(bool json);

struct ReplayCommand {
  std::string path;
  std::string device = "cpu";
  std::string strategy;  // empty: the device's default
  std::size_t scale = 1;
  int threads = 1;
  bool touch = false;
  bool once = false;  // no second run, and so no percentiles
  bool compare = false;
  std::string html;  // output file
  std::string max_memory;
  bool json = false;
};
Exit run_replay(const ReplayCommand& command);

struct PlanCommand {
  std::string path;
  std::string strategy = "best";
  std::string order = "given";
  std::optional<int> match_range = {};  // absent: tries several
  bool no_inplace = false;
  int parallel = 1;
  std::size_t most_edges = 0;
  std::string nodes;                      // "begin:end", either may be left out
  std::string after;                      // the plan of the range before
  std::optional<double> time_limit = {};  // seconds
  std::string max_memory;                 // of reading; human-readable
  std::uint64_t seed = 0;
  int threads = 1;
  std::string capacity;  // human-readable, such as "64KiB"
  std::string align;
  std::string budget;               // proposes changes when the plan does not fit
  std::string bandwidth = "16GiB";  // of moves, per second
  std::string move_to;              // the device of moves; empty: see BudgetOptions
  std::vector<std::string> arenas;  // "name=capacity" or "name"
  std::string max_chunk;
  std::vector<std::string> bind;  // name=size
  bool allow_unknown = false;
  bool all = false;  // run every strategy to completion
  std::string svg;   // output files
  std::string html;
  std::string out;
  std::string storage_ids;
  bool full = false;  // with json: every location
  bool json = false;
};
inline PlanJson detail_of(const PlanCommand& command) { return command.full ? PlanJson::with_locations : PlanJson::summary; }
Exit run_plan(const PlanCommand& command);

struct VerifyCommand {
  std::vector<std::string> paths;  // several: plans of ranges that follow one another
  std::string max_memory;
  bool json = false;
};
Exit run_verify(const VerifyCommand& command);

struct InspectCommand {
  std::string path;
  int depth = 1;     // of the name prefixes that are summarized
  bool all = false;  // every tensor, however many
  bool lax = false;
  bool json = false;
};
Exit run_inspect(const InspectCommand& command);

struct CheckCommand {
  std::string path;
  bool lax = false;
  bool json = false;
};
Exit run_check(const CheckCommand& command);

struct ConvertCommand {
  std::string in;
  std::string out;
  std::string dtype;  // empty: as they are
  std::string align;  // human-readable; empty: 4096
  bool lax = false;
  bool json = false;
};
Exit run_convert(const ConvertCommand& command);

struct SnapshotCommand {
  std::string path;
  std::string other;     // for diff: the later snapshot
  std::size_t top = 20;  // number of holders
  bool csv = false;      // every block
  std::string out;       // for html: output file; empty: beside the snapshot
  std::string max_memory;
  bool json = false;
};
Exit run_snapshot_html(const SnapshotCommand& command);
Exit run_snapshot_show(const SnapshotCommand& command);
Exit run_snapshot_diff(const SnapshotCommand& command);

struct TopCommand {
  std::string target;  // a process id or a program's name; empty: all
  double every = 1;    // seconds
  bool once = false;
  bool json = false;
};
Exit run_top(const TopCommand& command);

struct BenchCopyCommand {
  bool full = false;  // also every pair of dtypes and layouts
  bool json = false;
  bool quick = false;  // small sizes: a smoke test
  bool no_torch = false;
  std::vector<std::string> only;    // name prefixes; empty: all
  std::string device = {};          // a device with memory of its own; empty: the host
  std::optional<int> threads = {};  // absent: as many as copies use
  double torch_timeout = 120;       // seconds
};
Exit run_bench_copy(const BenchCopyCommand& command);

struct BenchAllocCommand {
  std::string device = "cpu";
  std::string strategy;  // empty: the device's default
  bool stream = false;   // on a stream of the device
  bool quick = false;    // small sizes: a smoke test
  bool json = false;
};
Exit run_bench_alloc(const BenchAllocCommand& command);

struct BenchLoadCommand {
  std::string file;           // empty: generates one of `size`
  std::string size = "2GiB";  // human-readable
  std::string device = "cpu";
  std::string mode = "auto";
  std::string dtype = "bf16";       // for the loads that convert
  std::optional<int> threads = {};  // absent: as many as copies use
  int rounds = 5;
  bool cold = false;   // drop the file from the page cache before each run
  bool quick = false;  // small sizes: a smoke test
  bool json = false;
};
Exit run_bench_load(const BenchLoadCommand& command);

}  // namespace berth::internal::cli
