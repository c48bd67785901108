// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"

// The sub-commands. Each prints a table for people, or with `json` one JSON value, and returns how the program exits.
namespace berth::internal::cli {

Exit run_devices(bool json);
Exit run_doctor(bool json);
Exit run_tour();
Exit run_tour_guest(const std::string& name);
Exit run_shm_list(bool json);
Exit run_shm_collect(bool json);

struct ReplayCommand {
  std::string path;
  std::string device = "cpu";
  std::string strategy;  // empty: the device's default
  std::size_t scale = 1;
  int threads = 1;
  bool touch = false;
  bool once = false;  // no second run, and so no percentiles
  bool compare = false;
  std::string html;  // a file to write
  bool json = false;
};
Exit run_replay(const ReplayCommand& command);

struct PlanCommand {
  std::string path;
  std::string strategy = "best";
  std::string order = "given";
  std::optional<int> match_range = {};  // left out: a sweep
  bool no_inplace = false;
  int colours = 1;
  std::optional<double> time_limit = {};  // seconds
  std::uint64_t seed = 0;
  int threads = 1;
  std::string capacity;  // byte counts as people write them
  std::string align;
  std::string budget;               // proposals when it does not fit
  std::string bandwidth = "16GiB";  // a second, of moves
  std::string move_to;              // the device of moves; empty: see BudgetOptions
  std::vector<std::string> arenas;  // name=capacity, or a name alone
  std::string max_chunk;
  std::vector<std::string> bind;  // name=size
  bool allow_unknown = false;
  bool all = false;  // every strategy to its end
  std::string svg;   // files to write
  std::string html;
  std::string out;
  bool full = false;  // with json: every placement
  bool json = false;
};
Exit run_plan(const PlanCommand& command);
Exit run_verify(const std::string& path, bool json);

struct InspectCommand {
  std::string path;
  int depth = 1;     // of the prefixes that are summed up
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
  std::string align;  // a byte count as people write them; empty: 4096
  bool lax = false;
  bool json = false;
};
Exit run_convert(const ConvertCommand& command);

struct SnapshotCommand {
  std::string path;
  std::string other;     // of a diff: the later one
  std::size_t top = 20;  // how many holders
  bool csv = false;      // every block
  std::string out;       // of html: the file to write; empty: beside the snapshot
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
  bool full = false;  // every pair of dtypes and layouts too
  bool json = false;
  bool quick = false;  // small: only to see that it works
  bool no_torch = false;
  std::vector<std::string> only;    // how names begin; empty: all
  std::string device = {};          // a device with memory of its own; empty: the host
  std::optional<int> threads = {};  // left out: as many as copies use
  double torch_timeout = 120;       // seconds
};
Exit run_bench_copy(const BenchCopyCommand& command);

struct BenchAllocCommand {
  std::string device = "cpu";
  std::string strategy;  // empty: the device's default
  bool stream = false;   // on a stream of the device
  bool quick = false;    // small: only to see that it works
  bool json = false;
};
Exit run_bench_alloc(const BenchAllocCommand& command);

struct BenchLoadCommand {
  std::string file;           // empty: one that is made, of `size`
  std::string size = "2GiB";  // a byte count as people write it
  std::string device = "cpu";
  std::string mode = "auto";
  std::string dtype = "bf16";       // of the loads that convert
  std::optional<int> threads = {};  // left out: as many as copies use
  int rounds = 5;
  bool cold = false;   // the file is dropped from the page cache before each turn
  bool quick = false;  // small: only to see that it works
  bool json = false;
};
Exit run_bench_load(const BenchLoadCommand& command);

}  // namespace berth::internal::cli
