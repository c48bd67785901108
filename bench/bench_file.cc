// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "berth/berth.h"

// Opening a safetensors file of many tensors, compared with reading its header and parsing it with
// nlohmann-json: bench_file [--tensors N] [--rounds N]. Both take turns in one process; medians. Opening
// validates every rule of the format and can find tensors by name afterwards; parsing does neither. The file is
// in the page cache. Prints one JSON object.
namespace {

using namespace berth;
using Clock = std::chrono::steady_clock;

// Tensors named as in a mixture-of-experts model.
std::vector<TensorSpec> tensors(std::size_t count) {
  std::vector<TensorSpec> all;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string layer = std::to_string(i / 400);
    const std::string expert = std::to_string(i % 400 / 3);
    const char* const part[] = {"gate_proj", "up_proj", "down_proj"};
    all.push_back(
        {"model.layers." + layer + ".mlp.experts." + expert + "." + part[i % 3] + ".weight." + std::to_string(i), DType::bf16, {2, 4}});
  }
  return all;
}

std::size_t parse_with_nlohmann(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t bytes = 0;
  file.read(reinterpret_cast<char*>(&bytes), sizeof bytes);
  std::string header(bytes, '\0');
  file.read(header.data(), static_cast<std::streamsize>(bytes));
  return nlohmann::json::parse(header).size();
}

template <class Work>
double ms(Work work) {
  const Clock::time_point start = Clock::now();
  work();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 20'000;
  int rounds = 31;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--tensors") == 0) count = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::atoi(argv[i + 1]);
  }
  const std::string path = "/tmp/berth_bench_file_" + std::to_string(getpid()) + ".safetensors";
  const std::vector<TensorSpec> specs = tensors(count);
  {
    SafetensorsWriter writer(path, specs);
    const Storage x = full({2, 4}, 1, DType::bf16, "cpu");
    for (const TensorSpec& one : specs) writer.write(one.name, x);
    writer.commit();
  }
  std::vector<double> ours;
  std::vector<double> theirs;
  std::vector<double> ratios;
  for (int i = 0; i < rounds; ++i) {
    std::size_t found = 0;
    ours.push_back(ms([&] { found = open_safetensors(path).size(); }));
    theirs.push_back(ms([&] { found += parse_with_nlohmann(path); }));
    ratios.push_back(theirs.back() / ours.back());
    if (found != 2 * count) std::abort();
  }
  std::printf("{\"tensors\": %zu, \"header_bytes\": %llu, \"open_ms\": %.3f, \"nlohmann_ms\": %.3f, \"ratio\": %.2f, \"goal\": 5}\n", count,
              static_cast<unsigned long long>(open_safetensors(path).files()[0].data_offset), median(ours), median(theirs), median(ratios));
  std::remove(path.c_str());
  return 0;
}
