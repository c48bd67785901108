// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "base/text.h"
#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"
#include "berth/plan.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/samples/sample_models.h"
#include "cli/tour_files.h"
#include "cli/tour_profile.h"
#include "os/file/shared_file.h"
#include "os/process/child.h"
#include "os/system.h"

// `berth tour`: what berth does, end to end, on this machine's devices. Everything it prints is computed live.
namespace berth::internal::cli {

namespace {

// What the default allocator of a device holds.
struct Held {
  Device device;
  std::uint64_t blocks = 0;
  std::size_t bytes = 0;

  friend bool operator==(const Held&, const Held&) = default;
};

std::vector<Held> held_by_defaults() {
  std::vector<Held> held;
  for (const Device device : all_devices()) {
    const Stats stats = default_allocator(device)->stats();
    held.push_back({device, stats.live_blocks, stats.in_use_bytes});
  }
  return held;
}

class Tour {
 public:
  // Runs the tour. False: a check failed.
  bool run();

 private:
  void step(std::string_view title) {
    print(fmt::format("\n{}  {}\n", paint(Mood::strong, fmt::format("{:>2}", ++number_)), paint(Mood::strong, title)));
    profile_.mark(fmt::format("{}", number_));
  }
  void say(std::string_view line) { print(fmt::format("    {}\n", line)); }
  void say_lines(const std::string& lines) {
    for (std::string_view rest = lines; !rest.empty();) {
      const std::size_t end = rest.find('\n');
      say(rest.substr(0, end));
      rest.remove_prefix(std::min(end, rest.size() - 1) + 1);
    }
  }
  void show(std::string_view code, std::string_view result) { print(fmt::format("    {:<46} {}\n", code, paint(Mood::quiet, result))); }
  void check(bool right, std::string_view claim) {
    right_ = right_ && right;
    print(fmt::format("    {} {}\n", right ? paint(Mood::good, "✔") : paint(Mood::bad, "✘"), claim));
  }

  void meet_devices();
  void make_storages_and_views();
  void convert();
  void copy_around();
  void copy_fast();
  void replay_against_malloc();
  void plan_a_model();
  void read_a_model_file();
  void write_report(const std::string& path, const std::string& page);
  void share_with_another_process();
  void run_out_of_memory();
  void look_for_leaks();
  void check_defaults();
  void tell_where_it_went();

  int number_ = 0;
  bool right_ = true;
  std::shared_ptr<TrackAdaptor> memory_ = track(direct("cpu"));
  std::vector<Held> held_at_start_ = held_by_defaults();  // on every device, since the tour copies to each
  TourProfile profile_;
};

std::string shape_and_strides(const Storage& s) { return fmt::format("{} strides {}", s.shape().to_string(), s.strides().to_string()); }

void Tour::meet_devices() {
  step("The devices of this machine");
  for (const Device device : all_devices()) {
    const Backend& behind = backend(device);
    say(fmt::format("{:<9} {:>9} free   {}", device.to_string(), text::bytes(behind.memory_info().free_bytes),
                    behind.properties().description));
  }
}

void Tour::make_storages_and_views() {
  step("Storages, and views that copy nothing");
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.0F);
  const Storage x = from_data(values, {2, 3, 4}, memory_);
  const Storage t = x.transpose(0, 2);
  const Storage back = x.slice(2, -1, -9, -2);
  show("x = from_data(values, {2, 3, 4}, memory)", shape_and_strides(x));
  show("x.transpose(0, 2)", shape_and_strides(t));
  show("x.slice(2, -1, -9, -2)", shape_and_strides(back));
  show("x.reshape({6, -1})", shape_and_strides(x.reshape({6, -1})));
  check(t.item<float>({3, 1, 0}) == x.item<float>({0, 1, 3}) && t.is_view_of(x) && memory_->live().size() == 1,
        "four storages, one allocation");
}

void Tour::convert() {
  step("Conversion between dtypes, rounded to nearest even");
  const std::vector<float> values = {1.0F, 3.14159265F, 65504.0F, 1e-3F};
  const Storage x = from_data(values, {4}, memory_);
  for (const DType dtype : {DType::bf16, DType::f16, DType::f8e4m3, DType::i8}) {
    const Storage there = x.to(dtype);
    const Storage again = there.to(DType::f32);
    std::string shown;
    for (const float value : again.elements<const float>()) shown += fmt::format("{:>12.6g}", value);
    show(fmt::format("x.to({}).to(f32)", to_string(dtype)), shown);
  }
  check(x.to(DType::bf16).to(DType::f32).item<float>({1}) == 3.140625F, "pi in bf16 is 3.140625");
}

void Tour::copy_around() {
  step("Copies to every device and back, in the order of a stream");
  std::vector<float> values(std::size_t{256} * 256);
  std::iota(values.begin(), values.end(), 0.0F);
  const Storage x = from_data(values, {256, 256}, memory_);
  for (const Device device : all_devices()) {
    const Stream stream = make_stream(device);
    const std::uint64_t start = os::steady_time_ns();
    const Storage there = x.to(device, {.stream = stream});
    const Storage doubled = there.transpose(0, 1).to(DType::f64, {.stream = stream});
    const Storage back = doubled.to("cpu", {.stream = stream}).to(DType::f32);
    const double milliseconds = static_cast<double>(os::steady_time_ns() - start) / 1e6;
    check(equal(back.transpose(0, 1), x),
          fmt::format("cpu → {:<8} → transposed as f64 → cpu   256 KiB, {:.1f} ms", device.to_string(), milliseconds));
  }
  try {
    x.to("sim:0").data<float>();
    check(false, "a host pointer into sim:0 was given out");
  } catch (const AccessError& error) {
    check(true, fmt::format("a host pointer into sim:0 is refused: {}", error.why()));
  }
}

// The best time of three runs: the first one has page faults.
template <class Work>
double best_ms(Work work) {
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t start = os::steady_time_ns();
    work();
    const double milliseconds = static_cast<double>(os::steady_time_ns() - start) / 1e6;
    if (i == 0 || milliseconds < best) best = milliseconds;
  }
  return best;
}

void Tour::copy_fast() {
  step("Copies and conversions beside memcpy");
  const Storage x = full({2048, 2048}, 1.5, DType::f32, "cpu");
  const Storage same = empty({2048, 2048}, DType::f32, "cpu");
  const Storage turned = empty({2048, 2048}, DType::bf16, "cpu");
  const auto rate = [](std::size_t bytes, double milliseconds) {
    return fmt::format("{:>6.1f} GB/s", static_cast<double>(bytes) / milliseconds / 1e6);
  };
  const double plain = best_ms([&] { std::memcpy(same.data_ptr(), x.data_ptr(), x.size_bytes()); });
  show("memcpy, one thread", rate(2 * x.size_bytes(), plain));
  show(fmt::format("same.copy_from(x), {} threads", copy_threads()), rate(2 * x.size_bytes(), best_ms([&] { same.copy_from(x); })));
  show("turned.copy_from(x.transpose(0, 1)), as bf16",
       rate(x.size_bytes() + turned.size_bytes(), best_ms([&] { turned.copy_from(x.transpose(0, 1)); })));
  const Storage far = empty({2048, 2048}, DType::bf16, "sim:0");
  say("the route of a copy is data: plan_route(x.transpose(0, 1).span(), far.span())");
  say_lines(plan_route(x.transpose(0, 1).span(), far.span()).to_string());
  check(equal(turned, x.transpose(0, 1).to(DType::bf16)) && turned.item<bfloat16>({7, 9}) == bfloat16(1.5), "the elements are right");
}

// The allocations of a small network in twelve inferences with varying input sizes: weights that stay, and
// activations that are freed after the next layer, except those that a later layer needs again.
std::vector<TraceEvent> inference_events() {
  using enum TraceEvent::Operation;
  std::vector<TraceEvent> events;
  std::uint64_t next = 0;
  const auto add = [&](std::size_t bytes) {
    events.push_back({allocate, next, bytes, 0, 0});
    return next++;
  };
  const auto drop = [&](std::uint64_t serial) { events.push_back({free, serial, 0, 0, 0}); };
  for (std::size_t layer = 0; layer < 24; ++layer) add((1 + layer % 4) * 589'824);
  for (std::size_t inference = 0; inference < 12; ++inference) {
    const std::size_t pixels = (inference * 5 % 7 + 4) * 40'000;
    std::uint64_t input = add(12 * pixels);
    std::uint64_t kept = add(pixels);
    for (std::size_t layer = 0; layer < 24; ++layer) {
      const std::uint64_t scratch = add(4096 + layer * 512);
      const std::uint64_t output = add(pixels * (64 >> layer / 8));
      drop(scratch);
      drop(layer % 4 == 3 ? std::exchange(kept, input) : input);
      input = output;
    }
    drop(input);
    drop(kept);
  }
  return events;
}

void Tour::replay_against_malloc() {
  step("A replay: what a program asked for, through the pool and through malloc");
  const ReplayScript script = plan_replay(inference_events());
  say(fmt::format("{} events of twelve inferences, {} live at the peak; every page is written to", script.steps.size(),
                  text::bytes(script.peak_live_bytes)));
  const ReplayResult pooled = replay(script, {.strategy = "pool", .touch = true, .percentiles = false});
  const ReplayResult plain = replay(script, {.strategy = kMallocStrategy, .touch = true, .percentiles = false});
  show("replay(script, {.strategy = \"malloc\"})", fmt::format("{:>8.1f} ms", plain.wall_ms));
  show("replay(script, {.strategy = \"pool\"})",
       fmt::format("{:>8.1f} ms   {} committed, in {} steps", pooled.wall_ms, text::bytes(*pooled.peak_committed_bytes), *pooled.commits));
  check(*pooled.ratio <= 1.25, fmt::format("the pool held {:.3f} times what the program asked for", *pooled.ratio));
}

void Tour::plan_a_model() {
  step("A plan: where every value of a network lives, before it runs");
  const OnnxModel model = read_onnx(samples::sample_residual_network({.picture = 64}), {.bind = {{"N", 4}}}, "the tour's network");
  const Plan made = berth::plan(model.graph, {.alignment = 64});
  show("read_onnx(bytes, {.bind = {{\"N\", 4}}})", fmt::format("{} nodes, {} values", model.graph.nodes.size(), model.graph.values.size()));
  show("plan(graph)", fmt::format("{} in one arena, by {}; {} without reuse", text::bytes(made.peak_bytes()), made.strategy(),
                                  text::bytes(made.naive_bytes())));
  say_lines(plan_picture(made, 0, 64, 8));
  check(made.outcome() == PlanOutcome::optimal,
        fmt::format("no plan can be smaller: {} are live at once", text::bytes(made.lower_bound_bytes())));
  const ShadowReport run = shadow_run(place(made, {{"cpu:0", memory_}}));
  check(run.ok(), fmt::format("placed and run with stamped bytes: {} read, none overwritten early", text::bytes(run.bytes_read)));
  write_report("berth-plan.html", plan_html(made, "The tour's network"));
}

// An unwritable directory is not a failure of the tour.
void Tour::write_report(const std::string& path, const std::string& page) {
  try {
    write_output(path, page);
    check(true, fmt::format("wrote {}, to look at it in a browser", path));
  } catch (const ArgumentError& error) {
    say(fmt::format("no HTML report: {}: {}", error.asked(), error.why()));
  }
}

void Tour::read_a_model_file() {
  step("A model file: written whole, mapped, and checked before it is read");
  tour_files({[this](std::string_view line) { say(line); }, [this](std::string_view code, std::string_view result) { show(code, result); },
              [this](bool right, std::string_view claim) { check(right, claim); }});
}

// The holders of a named storage; empty when there is none.
std::vector<SharedHolder> holders_of(const std::string& name) {
  for (const NamedShared& one : list_shared()) {
    if (one.name == name) return one.holders;
  }
  return {};
}

bool has_dead_holder(const std::string& name) {
  const std::vector<SharedHolder> holders = holders_of(name);
  return std::ranges::any_of(holders, [](const SharedHolder& holder) { return !holder.is_alive; });
}

void Tour::share_with_another_process() {
  step("Sharing: a second process maps the same bytes, and is killed");
  try {
    Storage w = create_shared("", {1024, 256}, DType::f32);
    const std::string name = shared_name(w);
    w.fill(1.5);
    show("w = create_shared(\"\", {1024, 256}, f32)", name);
    auto guest = os::Child::start({"/proc/self/exe", "tour-guest", name});
    const auto answer = guest ? guest->read_line(std::chrono::seconds(20)) : guest.failure();
    check(answer && *answer == "262144", "another process opened it by name and found all 262144 elements as they should be");
    for (int i = 0; i < 2000 && !has_dead_holder(name); ++i) os::sleep_us(1000);
    check(has_dead_holder(name), "it was then killed with SIGKILL, holding the storage: the kernel knows");
    check(reap_named().empty() && holders_of(name).size() == 1, "its claims are dropped; those of live processes stay");
    check(w.item<float>({0, 0}) == 2.5F && w.item<float>({1, 0}) == 1.5F, "its writes are here, and the other bytes are unchanged");
    w.close();
    check(holders_of(name).empty(), "nothing is left in /dev/shm");
  } catch (const DeviceError& error) {
    if (error.code() != ErrorCode::device_unavailable) throw;
    say(fmt::format("no named storages here: {}", error.why()));
  }
}

void Tour::run_out_of_memory() {
  step("Out of memory, with an answer to \"who holds it?\"");
  const auto limited = pool("cpu", {.limit_bytes = 64_MiB});
  std::vector<Storage> held;
  {
    const TagScope scope("weights");
    for (int i = 0; i < 5; ++i) held.push_back(empty({2_MiB}, DType::f32, limited));
  }
  {
    const TagScope scope("kv cache");
    held.push_back(empty({20_MiB}, DType::u8, limited));
  }
  try {
    held.push_back(empty({16_MiB}, DType::u8, limited, {.tag = "activations"}));
    check(false, "the limit let 76 MiB through");
  } catch (const OutOfMemory& error) {
    say_lines(error.report().to_string());
    check(error.report().would_be_enough_bytes == 12_MiB, "12 MiB more would be enough, and nothing was lost");
  }
  held.clear();
  check(limited->stats().live_blocks == 0, "all of it is free again");
}

void Tour::look_for_leaks() {
  step("What is left");
  const Stats stats = memory_->stats();
  for (const LiveBlock& block : memory_->live()) say("leaked: " + block.to_string());
  check(memory_->live().empty() && stats.in_use_bytes == 0,
        fmt::format("nothing leaked: {} allocations, {} frees, {} at the peak", stats.allocations, stats.frees,
                    text::bytes(stats.peak_in_use_bytes)));
  check_defaults();
  check(misuse_count() == 0, "no misuse reported");
}

void Tour::check_defaults() {
  std::string devices;
  for (const Held& now : held_by_defaults()) {
    const auto before = std::ranges::find(held_at_start_, now.device, &Held::device);
    if (before == held_at_start_.end() || *before != now)
      say(fmt::format("leaked on {}: now {} in {} blocks", now.device.to_string(), text::bytes(now.bytes), now.blocks));
    devices += (devices.empty() ? "" : ", ") + now.device.to_string();
  }
  check(held_by_defaults() == held_at_start_, fmt::format("the default allocators of {} hold what they held at the start", devices));
}

void Tour::tell_where_it_went() {
  step("Where the memory went");
  say_lines(profile_.lines());
  check(profile_.is_settled(), "by the profiler's count, everything that the tour allocated is freed");
  write_report("berth-tour.html", profile_.page());
}

bool Tour::run() {
  const std::uint64_t start = os::steady_time_ns();
  print(fmt::format("berth {}: the memory under a tensor program\n", version()));
  meet_devices();
  make_storages_and_views();
  convert();
  copy_around();
  copy_fast();
  replay_against_malloc();
  plan_a_model();
  read_a_model_file();
  share_with_another_process();
  run_out_of_memory();
  look_for_leaks();
  tell_where_it_went();
  const double seconds = static_cast<double>(os::steady_time_ns() - start) / 1e9;
  print(fmt::format(
      "\n{} in {:.1f} s. Next: berth devices, berth doctor, berth replay, berth plan, berth shm, berth inspect, berth snapshot, berth top, "
      "docs/observing.md\n",
      right_ ? paint(Mood::good, "All of it as it should be") : paint(Mood::bad, "Something is wrong: see ✘ above"), seconds));
  return right_;
}

}  // namespace

Exit run_tour() {
  Tour tour;
  return tour.run() ? Exit::ok : Exit::no;
}

}  // namespace berth::internal::cli
