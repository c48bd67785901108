// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/commands.h"

namespace CLI {
class App;
}

// The options of each subcommand: CLI11 parses and validates them into the struct, which must outlive the app.
namespace berth::internal::cli {

void add_replay_options(CLI::App& app, ReplayCommand& command);
void add_plan_options(CLI::App& app, PlanCommand& command);
void add_verify_options(CLI::App& app, VerifyCommand& command);
void add_inspect_options(CLI::App& app, InspectCommand& command);
void add_check_options(CLI::App& app, CheckCommand& command);
void add_convert_options(CLI::App& app, ConvertCommand& command);
void add_snapshot_show_options(CLI::App& app, SnapshotCommand& command);
void add_snapshot_diff_options(CLI::App& app, SnapshotCommand& command);
void add_snapshot_html_options(CLI::App& app, SnapshotCommand& command);
void add_top_options(CLI::App& app, TopCommand& command);
void add_bench_copy_options(CLI::App& app, BenchCopyCommand& command);
void add_bench_alloc_options(CLI::App& app, BenchAllocCommand& command);
void add_bench_load_options(CLI::App& app, BenchLoadCommand& command);

}  // namespace berth::internal::cli
