// SPDX-License-Identifier: Apache-2.0
// What the command line says would help is done here, as a user would do it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "file/file_support.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/onnx_writer.h"
#include "support/process.h"

namespace berth::testing {
namespace {

struct CommandRow {
  std::string help;
  std::string wrong;
  std::string right;
};

class HelpOfTheCommandLine : public ::testing::Test {
 protected:
  HelpOfTheCommandLine() {
    folder_.write("lives.csv", "id,lower,upper,size\na,0,2,4096\nb,1,3,4096\n");
    GraphWriter model;
    model.input("x", kFloat, {"N", 4}).node("Relu", {"x"}, {"y"}).output("y", kFloat);
    folder_.write("model.onnx", model.model());
    GraphWriter outside;
    outside.input("x", kFloat, {4}).initializer(external_tensor("w", kFloat, {4}, {{"location", "weights.bin"}}));
    outside.node("Add", {"x", "w"}, {"y"}).output("y", kFloat);
    folder_.write("outside.onnx", outside.model());
    save_safetensors(folder_ / "m.safetensors", {{"w", zeros({8}, DType::f32, "cpu")}});
    save_safetensors(folder_ / "two.safetensors", {{"v", zeros({8}, DType::f32, "cpu")}, {"w", zeros({8}, DType::f32, "cpu")}});
    (void)save_snapshot(folder_ / "s.json");
    folder_.write("a.csv", "a,1,4096,0\nf,1,4096,0\n");
  }

  Ran command(const std::string& arguments) const {
    return run_command("cd " + folder_.path() + " && timeout 120 " BERTH_CLI " " + arguments);
  }

  static void expect_help(const Ran& refused, const std::string& help) {
    EXPECT_NE(refused.output.find("help:  " + help + "\n"), std::string::npos) << help << "\n  is not in\n" << refused.output;
  }

  void follow(const std::vector<CommandRow>& rows) const {
    for (const CommandRow& row : rows) {
      const Ran refused = command(row.wrong);
      EXPECT_NE(refused.exit_code, 0) << row.wrong;
      expect_help(refused, row.help);
      const Ran well = command(row.right);
      EXPECT_EQ(well.exit_code, 0) << row.right << ": " << well.output;
    }
  }

  const Folder folder_;
};

TEST_F(HelpOfTheCommandLine, OfCommands) {
  follow({
      {"berth --help says what it takes", "fly", "--help"},
      {"berth plan --help says what it takes", "plan --fast", "plan --help"},
      {"berth bench copy --help says what it takes", "bench copy --threads 0", "bench copy --help"},
      {"berth shm --help says what it takes", "shm list", "shm --help"},
      {"berth plan --help says what it takes", "plan --out '' lives.csv", "plan --out p.json lives.csv"},
      {"berth replay --help says what it takes", "replay --scale 0 a.csv", "replay --scale 1 a.csv"},
      {"berth snapshot show --help says what it takes", "snapshot show --top -1 s.json", "snapshot show --top 1 s.json"},
      {"berth snapshot show --help says what it takes", "snapshot show --top 99999999999999999999 s.json",
       "snapshot show --top 18446744073709551615 s.json"},
  });
  for (const char* words : {"--help", "plan --help", "bench copy --help", "shm --help"})
    EXPECT_NE(command(words).output.find("--help"), std::string::npos) << words;
  EXPECT_NE(command("replay --scale 0 a.csv").output.find("'0' is not a whole number from 1 to"), std::string::npos);
  EXPECT_NE(command("plan --help").output.find("--capacity"), std::string::npos);
  EXPECT_NE(command("shm --help").output.find("ls"), std::string::npos);
}

std::string many_lives(int rows) {
  std::string text = "id,lower,upper,size\n";
  for (int i = 0; i < rows; ++i) text += std::to_string(i) + ',' + std::to_string(i) + ',' + std::to_string(i + 2) + ",64\n";
  return text;
}

TEST_F(HelpOfTheCommandLine, OfLimitsOfMemory) {
  folder_.write("packed.csv", many_lives(1000));
  ASSERT_EQ(run_command("gzip " + folder_ / "packed.csv").exit_code, 0);
  follow({{"if you trust it, allow more: --max-memory 4GiB, for example", "plan --max-memory 1KiB packed.csv.gz",
           "plan --max-memory 4GiB packed.csv.gz"}});
  const std::string described = "if you trust it, allow more (--max-memory 4GiB, ReadLimits::memory_bytes)";
  follow({{described, "replay --max-memory 1 a.csv", "replay --max-memory 4GiB a.csv"},
          {described, "replay --html r.html --max-memory 1KiB a.csv", "replay --html r.html --max-memory 4GiB a.csv"},
          {described, "snapshot show --max-memory 1KiB s.json", "snapshot show --max-memory 4GiB s.json"},
          {described, "snapshot diff --max-memory 1KiB s.json s.json", "snapshot diff --max-memory 4GiB s.json s.json"},
          {described, "snapshot html --max-memory 1KiB s.json", "snapshot html --max-memory 4GiB s.json"}});
}

TEST_F(HelpOfTheCommandLine, OfLimitsOfTime) {
  folder_.write("many.csv", many_lives(200'000));
  const Ran late = command("plan --time-limit 0.01 many.csv");
  EXPECT_EQ(late.exit_code, 1) << late.output;
  const std::size_t at = late.output.find("help:  ");
  ASSERT_NE(at, std::string::npos) << late.output;
  const std::string help = late.output.substr(at + 7, late.output.find('\n', at) - at - 7);
  EXPECT_TRUE(is_like(help, "give it --time-limit …, or none")) << help;
  EXPECT_GT(std::stod(help.substr(std::string("give it --time-limit ").size())), 0.01) << help;
  EXPECT_EQ(command("plan many.csv").exit_code, 0);
}

TEST_F(HelpOfTheCommandLine, OfPlans) {
  follow({
      {"write 4096, 64KiB or 1.5GiB", "plan --capacity much lives.csv", "plan --capacity 64KiB lives.csv"},
      {"write 4096, 64KiB or 1.5GiB", "plan --budget much lives.csv", "plan --budget 1.5GiB lives.csv"},
      {"write batch=8,seq=128", "plan --bind N model.onnx", "plan --bind N=8 model.onnx"},
      {"bind each dimension once", "plan --bind N=8,N=9 model.onnx", "plan --bind N=8 model.onnx"},
      {"leave it out", "plan --bind N=8 lives.csv", "plan lives.csv"},
      {"write sram=512KiB, or dram", "plan --arena =512KiB lives.csv", "plan --arena sram=512KiB --arena dram lives.csv"},
      {"give a budget", "plan --move-to sim:0 lives.csv", "plan --move-to sim:0 --budget 1MiB lives.csv"},
      {"give it more capacity", "plan --capacity 4096 --out p.json lives.csv", "plan --capacity 64KiB --out p.json lives.csv"},
      {"name a file that can be read", "plan nothing.csv", "plan lives.csv"},
      {"name a file that can be written", "plan --out /nowhere/at/all lives.csv", "plan --out p.json lives.csv"},
      {"free space on the disk, or write to another", "plan --out /dev/full lives.csv", "plan --out p.json lives.csv"},
      {"berth plan --help says what it takes", "plan --time-limit nan lives.csv", "plan --time-limit 9.5 lives.csv"},
      {"berth top --help says what it takes", "top --every nan", "top --help"},
      {"give a plan that berth plan --out or PlanFile wrote", "verify lives.csv", "verify p.json"},
      {"write 0:12, or 12: for the rest", "plan --nodes 1 lives.csv", "plan --nodes 0:1 --out first.json lives.csv"},
      {"write 0:12, or 12: for the rest", "plan --nodes a:b lives.csv", "plan --nodes 1: --out rest.json lives.csv"},
      {"plan each range with --after the plan before it", "verify first.json rest.json",
       "plan --nodes 1: --after first.json --out rest.json lives.csv && " BERTH_CLI " verify first.json rest.json"},
      {"put the whole file beside the model", "plan outside.onnx", "--version"},
  });
  folder_.write("weights.bin", std::string(16, 'x'));
  EXPECT_EQ(command("plan outside.onnx").exit_code, 0) << "the file is beside the model now";
}

TEST_F(HelpOfTheCommandLine, OfModelsWhoseDataLieElsewhere) {
  const Folder elsewhere;
  elsewhere.write("weights.bin", std::string(16, 'x'));
  std::filesystem::create_symlink(elsewhere / "weights.bin", folder_ / "weights.bin");
  const Ran refused = command("plan outside.onnx");
  expect_help(refused, "keep the data beside the model");
  std::filesystem::remove(folder_ / "weights.bin");
  std::filesystem::copy_file(elsewhere / "weights.bin", folder_ / "weights.bin");
  EXPECT_EQ(command("plan outside.onnx").exit_code, 0);
}

TEST_F(HelpOfTheCommandLine, OfTensorFiles) {
  follow({
      {"use f64, f32, bf16, f16 or an f8", "convert --dtype i32 m.safetensors o.safetensors",
       "convert --dtype bf16 m.safetensors o.safetensors"},
      {"use f64, f32, bf16, f16 or an f8", "convert --dtype u8 m.safetensors o.safetensors",
       "convert --dtype f8e4m3 m.safetensors o.safetensors"},
      {"leave it out, or write safetensors", "convert --align 4096 m.safetensors o.npz", "convert m.safetensors o.npz"},
      {"leave it out, or write safetensors", "convert --align 4096 m.safetensors o.npz",
       "convert --align 4096 m.safetensors o.safetensors"},
      {"use 4096 or 64KiB", "convert --align much m.safetensors o.safetensors", "convert --align 64KiB m.safetensors o.safetensors"},
      {"write an .npz file", "convert two.safetensors o.npy", "convert two.safetensors o.npz"},
      {"use a number and a unit, as in 2GiB", "bench load --size much", "bench load --size 2MiB --rounds 1"},
  });
}

TEST_F(HelpOfTheCommandLine, OfPackedFiles) {
  ASSERT_EQ(run_command("cd " + folder_.path() + " && gzip -k a.csv && head -c 20 a.csv.gz > short.gz").exit_code, 0);
  std::string wrong = folder_.read("a.csv.gz");
  wrong[wrong.size() - 6] ^= 0x55;  // in the check sum
  folder_.write("wrong.gz", wrong);
  std::filesystem::resize_file(folder_.write("large.csv", ""), (std::uint64_t{4} << 30) + 1);
  follow({
      {"copy the file again", "replay short.gz", "replay a.csv.gz"},
      {"check that the file is whole", "replay wrong.gz", "replay a.csv.gz"},
      {"give one of at most 4 GiB, such as a trace of fewer events (BERTH_TRACE_LIMIT)", "replay large.csv", "replay a.csv"},
  });
}

TEST_F(HelpOfTheCommandLine, OfMeasuring) {
  const Ran none = command("bench copy --only zzz");
  expect_help(none, "berth bench copy --quick prints the names; --full has more");
  const Ran names = command("bench copy --quick --no-torch");
  EXPECT_NE(names.output.find("transpose"), std::string::npos) << names.output;
  EXPECT_EQ(command("bench copy --quick --no-torch --only transpose").exit_code, 0);
  const Ran of_device = command("bench copy --only zzz --device sim:0");
  expect_help(of_device, "berth bench copy --quick --device sim:0 prints the names");
  EXPECT_EQ(command("bench copy --quick --device sim:0").exit_code, 0);
  const Ran full = command("bench copy --full --only zzz");
  expect_help(full, "berth bench copy --quick --full --json prints all names");
  follow({{"leave it out to measure the host, or name a device with memory of its own", "bench copy --quick --device cpu --only transpose",
           "bench copy --quick --device sim:0"}});
  const Ran some = run_command("BERTH_SIM_CAPACITY=64KiB " BERTH_CLI " bench copy --quick --device sim:0");
  expect_help(some, "berth doctor says what works here; the error of each is in its row");
  EXPECT_NE(some.output.find("allocating"), std::string::npos) << some.output;
  EXPECT_NE(command("doctor").output.find("sim:0"), std::string::npos);
}

TEST_F(HelpOfTheCommandLine, OfTheDoctor) {
  const std::string locked = "ulimit -l unlimited, for large pinned buffers on a GPU machine";
  const Ran limited = run_command("ulimit -l 64; " BERTH_CLI " doctor");
  EXPECT_NE(limited.output.find("help: locked memory: " + locked), std::string::npos) << limited.output;
  const Ran unlimited = run_command("ulimit -l unlimited 2> /dev/null || exit 77; " BERTH_CLI " doctor");
  if (unlimited.exit_code == 77) GTEST_SKIP() << "the limit may not be raised here";
  EXPECT_EQ(unlimited.output.find(locked), std::string::npos) << unlimited.output;
}

TEST_F(HelpOfTheCommandLine, OfTheOutput) {
  const Ran full = command("devices > /dev/full");
  expect_help(full, "check the disk, or where standard output goes");
  EXPECT_EQ(command("devices > /dev/null").exit_code, 0);
  const std::string live = "/dev/shm/berth-help-top-" + std::to_string(getpid());
  const std::string environment = "BERTH_LIVE_DIR=" + live + " ";
  const Ran none = run_command(environment + BERTH_CLI " top --once");
  expect_help(none, "start it with BERTH_LIVE=1, or have it call berth::expose_live()");
  const Ran shown =
      run_command(environment + "BERTH_LIVE=1 " BERTH_OBSERVE_HELPER " stay > /dev/null 2>&1 & pid=$!; for i in $(seq 200); do " +
                  environment + BERTH_CLI " top --once $pid > /dev/null 2>&1 && break; sleep 0.05; done; " + environment +
                  BERTH_CLI " top --once $pid; result=$?; kill -9 $pid; exit $result");
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
  std::filesystem::remove_all(live);
}

// Those of the library that send a user to the command line.
TEST_F(HelpOfTheCommandLine, OfTheLibrary) {
  const Ran devices = command("devices");
  EXPECT_EQ(devices.exit_code, 0);
  EXPECT_NE(devices.output.find("cuda"), std::string::npos) << "berth devices shows what each device can do";
  EXPECT_NE(command("doctor").output.find("cuda"), std::string::npos) << "berth doctor shows what this machine has";
  EXPECT_EQ(command("shm ls").exit_code, 0) << "berth shm ls lists the names";
  EXPECT_NE(command("inspect m.safetensors").output.find("w"), std::string::npos) << "entries() and berth inspect list them";
}

}  // namespace
}  // namespace berth::testing
