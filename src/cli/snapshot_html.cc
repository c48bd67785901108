// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "base/text.h"
#include "berth/berth.h"
#include "berth/observe.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/saved_snapshot.h"

// `berth snapshot html`.
namespace berth::internal::cli {

namespace {

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The path of the snapshot, with the extension .html.
std::string report_path(const std::string& path) {
  const std::string name = file_name(path);
  const std::size_t dot = name.find('.', 1);
  return path.substr(0, path.size() - name.size()) + name.substr(0, dot) + ".html";
}

}  // namespace

Exit run_snapshot_html(const SnapshotCommand& command) {
  const SavedSnapshot snapshot = open_snapshot(command.path, command.max_memory);
  const std::string path = command.out.empty() ? report_path(command.path) : command.out;
  write_output(path, made_of(snapshot, [&] { return snapshot_html(snapshot.content, file_name(command.path)); }));
  print(text::printable(path, 4096) + "\n");
  return Exit::ok;
}

}  // namespace berth::internal::cli
