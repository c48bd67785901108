// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "berth/berth.h"
#include "berth/extend.h"
#include "cli/bench/alloc_cases.h"
#include "cli/commands.h"
#include "cli/table.h"

namespace berth::internal::cli {

namespace {

// Blocks of a berth allocator, on a stream.
class BerthPeer {
 public:
  BerthPeer(Allocator& allocator, StreamRef stream) noexcept : allocator_(allocator), stream_(stream) {}
  Block take(std::size_t bytes) { return allocator_.allocate({.bytes = bytes, .stream = stream_}); }
  void give(const Block& block) noexcept { allocator_.deallocate(block); }

 private:
  Allocator& allocator_;
  StreamRef stream_;
};

std::string figures_json(const BenchAllocCommand& command, const Allocator& allocator, const std::vector<AllocFigure>& figures) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().member("device", Device(command.device).to_string()).member("allocator", allocator.settings());
  json.key("ns_per_pair").begin_object();
  for (const AllocFigure& figure : figures) json.member(figure.name, figure.ns);
  json.end_object().end_object();
  return json.take() + "\n";
}

std::string figures_table(const BenchAllocCommand& command, const Allocator& allocator, const std::vector<AllocFigure>& figures) {
  Table table({{"allocate + free"}, {"ns", Table::Align::right}});
  for (const AllocFigure& figure : figures) table.add({figure.name, fmt::format("{:.1f}", figure.ns)});
  return fmt::format("{} on {}\n", allocator.settings(), Device(command.device).to_string()) + table.to_string();
}

}  // namespace

Exit run_bench_alloc(const BenchAllocCommand& command) {
  const Device device(command.device);
  const std::shared_ptr<Allocator> allocator =
      command.strategy.empty() ? default_allocator(device) : make_allocator(command.strategy, device);
  const bool streams = command.stream && backend(device).properties().abilities.streams;
  const Stream stream = streams ? make_stream(device) : Stream();
  BerthPeer peer(*allocator, stream);
  AllocPace pace;
  if (command.quick) pace = {.rounds = 1, .pairs = 200, .live = 200, .threads = 2};
  const StatusLine status("measuring allocations");
  const std::vector<AllocFigure> figures = alloc_figures(peer, pace);
  print(command.json ? figures_json(command, *allocator, figures) : figures_table(command, *allocator, figures));
  return Exit::ok;
}

}  // namespace berth::internal::cli
