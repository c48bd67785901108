// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "berth/berth.h"
#include "berth/extend.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/temporary_file.h"
#include "device/host_access.h"
#include "os/file/data_file.h"
#include "os/file/descriptor.h"
#include "os/system.h"

namespace berth::internal::cli {

namespace {

// A model of about `bytes`: two large and two small tensors per layer, as in language models.
class SampleModel {
 public:
  explicit SampleModel(std::size_t bytes) {
    constexpr std::int64_t kWidth = 1024;
    constexpr std::size_t kLayerBytes = (5 * kWidth * kWidth + 2 * kWidth) * sizeof(float);
    const Storage large = full({4 * kWidth, kWidth}, 0.5F, DType::f32, "cpu");
    const Storage square = full({kWidth, kWidth}, -1.25F, DType::f32, "cpu");
    const Storage small = full({kWidth}, 3.0F, DType::f32, "cpu");
    std::vector<NamedTensor> tensors;
    for (std::size_t layer = 0; layer < std::max<std::size_t>(bytes / kLayerBytes, 1); ++layer) {
      const std::string prefix = fmt::format("layers.{}.", layer);
      tensors.push_back({prefix + "up", large});
      tensors.push_back({prefix + "out", square});
      tensors.push_back({prefix + "scale", small});
      tensors.push_back({prefix + "bias", small});
    }
    save_safetensors(path(), tensors);
  }
  const std::string& path() const noexcept { return file_.path(); }

 private:
  const TemporaryFile file_{"bench.safetensors"};
};

// The baseline: one thread reads the files sequentially into memory of the same allocator.
void read_by_one_thread(const SafetensorsFile& model) {
  for (const TensorFile& file : model.files()) {
    const Storage memory = empty({file.size_bytes}, DType::u8, "cpu");
    const Result<os::Descriptor> open = os::open_data(file.path.c_str(), os::OpenFor::read);
    const Result<std::size_t> read = open ? os::read_at(open->number(), 0, memory.data_ptr(), file.size_bytes) : open.failure();
    if (!read || *read < file.size_bytes)
      throw DeviceError(ErrorCode::io_error, {"reading " + text::quoted(file.path), "it cannot be read to its end", "use another file"});
  }
}

struct LoadFigure {
  std::string name;
  bool fresh = false;  // into memory that the process has not touched
  double seconds = 0;  // median of the rounds
  double by_read = 0;  // time of the baseline / `seconds`, median of the rounds: above 1, it is faster
  LoadReport report = {};
};

// One contestant: loads the model and releases it.
struct LoadWay {
  std::string name;
  std::optional<LoadOptions> options;  // none: the baseline
};

// Validates the command before a file is made.
std::vector<LoadWay> load_ways(const BenchLoadCommand& command) {
  const LoadOptions plain{.threads = command.threads.value_or(0), .mode = parse_load_mode(command.mode)};
  LoadOptions converted = plain;
  converted.dtype = parse_dtype(command.dtype);
  std::vector<LoadWay> ways;
  if (device::is_host(backend(Device(command.device)))) ways.push_back({"one thread of read", std::nullopt});
  ways.push_back({"load", plain});
  ways.push_back({fmt::format("load, as {}", to_string(*converted.dtype)), converted});
  return ways;
}

// Drops the files from the page cache. REQUIRES: what was just written has been synced to disk.
void forget_cached(const SafetensorsFile& model) {
  for (const TensorFile& file : model.files()) {
    const Result<os::Descriptor> open = os::open_data(file.path.c_str(), os::OpenFor::read);
    if (open) os::forget_cached(open->number(), 0, file.size_bytes);
  }
}

class LoadBench {
 public:
  LoadBench(const BenchLoadCommand& command, std::vector<LoadWay> ways, const SafetensorsFile& model)
      : command_(command), ways_(std::move(ways)), model_(model), device_(command.device) {}

  std::vector<LoadFigure> run() {
    std::vector<LoadFigure> figures;
    for (const bool fresh : {true, false}) {
      for (LoadFigure& figure : measure(fresh)) figures.push_back(std::move(figure));
    }
    return figures;
  }

 private:
  double seconds(const LoadWay& way, bool fresh, LoadReport& report) const {
    if (fresh) default_allocator(device_)->release_cached();
    if (command_.cold) forget_cached(model_);
    const std::uint64_t began = os::steady_time_ns();
    if (way.options)
      report = load(model_, device_, *way.options).report();
    else
      read_by_one_thread(model_);
    return static_cast<double>(os::steady_time_ns() - began) * 1e-9;
  }

  // Every contestant takes a turn in each round, so that a slow period of the machine affects all of them.
  std::vector<LoadFigure> measure(bool fresh) const {
    std::vector<std::vector<double>> times(ways_.size());
    std::vector<LoadFigure> figures(ways_.size());
    // The first round is a warm-up: it fills the page cache and makes the staging buffers.
    for (int round = -1; round < command_.rounds; ++round) {
      for (std::size_t i = 0; i < ways_.size(); ++i) {
        const double taken = seconds(ways_[i], fresh, figures[i].report);
        if (round >= 0) times[i].push_back(taken);
      }
    }
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      figures[i].name = ways_[i].name;
      figures[i].fresh = fresh;
      figures[i].seconds = median(times[i]);
      std::vector<double> ratios;
      for (std::size_t round = 0; device::is_host(device_) && round < times[i].size(); ++round)
        ratios.push_back(times[0][round] / times[i][round]);
      figures[i].by_read = ratios.empty() ? 0 : median(ratios);
    }
    return figures;
  }

  static double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  const BenchLoadCommand& command_;
  const std::vector<LoadWay> ways_;
  const SafetensorsFile& model_;
  const Device device_;
};

double rate(const SafetensorsFile& model, double seconds) { return static_cast<double>(model.tensor_bytes()) / seconds; }

std::string load_json(const SafetensorsFile& model, const std::vector<LoadFigure>& figures) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().member("file", model.path()).member("bytes", model.tensor_bytes()).member("tensors", model.size());
  json.key("figures").begin_array();
  for (const LoadFigure& figure : figures) {
    json.begin_object().member("name", figure.name).member("fresh_memory", figure.fresh).member("seconds", figure.seconds);
    json.member("bytes_per_second", rate(model, figure.seconds));
    json.key("by_read");
    figure.by_read == 0 ? json.null() : json.value(figure.by_read);
    json.key("load");
    figure.report.tensors == 0 ? (void)json.null() : figure.report.write_json(json);
    json.end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string load_table(const SafetensorsFile& model, const std::string& device, const std::vector<LoadFigure>& figures) {
  using enum Table::Align;
  Table table(
      {{"way"}, {"memory"}, {"time", right}, {"rate", right}, {"by one read", right}, {"staging", right}, {"mode"}, {"threads", right}});
  for (const LoadFigure& figure : figures) {
    const LoadReport& report = figure.report;
    const bool ours = report.tensors != 0;
    table.add({paint(Mood::strong, figure.name), figure.fresh ? "fresh" : "reused", fmt::format("{:.1f} ms", figure.seconds * 1e3),
               fmt::format("{:.2f} GB/s", rate(model, figure.seconds) * 1e-9),
               figure.by_read == 0 ? "–" : fmt::format("{:.2f}", figure.by_read), ours ? text::bytes(report.staging_bytes) : "–",
               ours ? std::string(to_string(report.mode)) : "read", ours ? std::to_string(report.threads) : "1"});
  }
  return fmt::format("{} in {} tensors, onto {}\n", text::bytes(model.tensor_bytes()), model.size(), device) + table.to_string();
}

std::size_t parse_size(const std::string& given) {
  std::uint64_t bytes = 0;
  if (text::parse_bytes(given, bytes) && bytes != 0) return checked_narrow<std::size_t>(bytes, "the size of the file");
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join("--size ", text::printable(given)), "it is not a byte count", "use a number and a unit, as in 2GiB"});
}

}  // namespace

Exit run_bench_load(const BenchLoadCommand& command) {
  std::vector<LoadWay> ways = load_ways(command);
  const StatusLine status("measuring loads");
  std::optional<SampleModel> made;
  if (command.file.empty()) made.emplace(command.quick ? std::size_t{1} << 20 : parse_size(command.size));
  const SafetensorsFile model = open_safetensors(made ? made->path() : command.file);
  BenchLoadCommand paced = command;
  if (command.quick) paced.rounds = 1;
  const std::vector<LoadFigure> figures = LoadBench(paced, std::move(ways), model).run();
  print(command.json ? load_json(model, figures) : load_table(model, command.device, figures));
  return Exit::ok;
}

}  // namespace berth::internal::cli
