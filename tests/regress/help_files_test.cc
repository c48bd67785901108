// SPDX-License-Identifier: Apache-2.0
// What errors of tensor files say would help is done here, as a user would do it. "Get the file again" is followed by
// the same file whole; what the system refuses is injected.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "file/file_support.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/failing_calls.h"

namespace berth::testing {
namespace {

const std::string kHeader = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

std::string npy(const std::string& dictionary, std::size_t data_bytes) {
  return std::string("\x93NUMPY\x01") + '\0' + little(dictionary.size(), 2) + dictionary + std::string(data_bytes, '\x01');
}

// Opens a file of these bytes.
std::function<void()> opening(const Folder& folder, const std::string& name, const std::string& bytes) {
  return [&folder, name, bytes] {
    const std::string path = folder.write(name, bytes);
    if (name.ends_with(".npy"))
      (void)map_npy(path);
    else if (name.ends_with(".npz"))
      (void)open_npz(path);
    else
      (void)open_safetensors(path);
  };
}

TEST(HelpFollowed, OfSafetensors) {
  const Folder folder;
  const auto file = [&](const std::string& bytes) { return opening(folder, "m.safetensors", bytes); };
  const auto good = file(safetensors_bytes(kHeader, 8));
  follow({
      {"get the file again: it is empty, or was truncated", file(""), good},
      {"check that it is a safetensors file", file("# a text, and not a model at all"), good},
      {"get the file again: it was truncated, or is not a safetensors file", file(little(500, 8) + "{}"), good},
      {"get the file again: it was truncated, or its header is of another file", file(safetensors_bytes(kHeader, 4)), good},
      {"get the file again, or write it with another tool", file(safetensors_bytes("{not JSON", 8)), good},
  });
  const std::string index = R"({"metadata":{"total_size":8},"weight_map":{"w":"part.safetensors"}})";
  const auto with_index = [&](const std::string& bytes) { return opening(folder, "m.safetensors.index.json", bytes); };
  follow({
      {"check that it is the index of a model",
       [&] {
         const std::string path = folder.write("m.safetensors.index.json", "");
         std::filesystem::resize_file(path, 200 << 20);
         (void)open_safetensors(path);
       },
       [&] {
         folder.write("part.safetensors", safetensors_bytes(kHeader, 8));
         with_index(index)();
       }},
      {"get all files of the model again",
       [&] {
         std::filesystem::remove(folder / "part.safetensors");
         with_index(index)();
       },
       [&] {
         folder.write("part.safetensors", safetensors_bytes(kHeader, 8));
         with_index(index)();
       }},
  });
}

TEST(HelpFollowed, OfArraysOfNumPy) {
  const Folder folder;
  const auto file = [&](const std::string& bytes) { return opening(folder, "a.npy", bytes); };
  const auto dict = [](const std::string& descr) { return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (2,), }\n"; };
  const auto good = file(npy(dict("<f4"), 8));
  const auto saved = [&] {
    save_npz(folder / "a.npz", {{"a", zeros({2}, DType::f32, "cpu")}});
    (void)open_npz(folder / "a.npz");
  };
  follow({
      {"save it again with numpy.save", file(std::string("\x93NUMPY\x09") + '\0' + std::string(200, ' ')), good},
      {"save arrays of numbers", file(npy(dict("|O"), 8)), good},
      {"save it as one of the plain, little-endian dtypes", file(npy(dict(">f4"), 8)), good},
      {"get the file again: it was truncated, or its header is of another file", file(npy(dict("<f4"), 4)), good},
      {"get the file again, or write it with another tool", file(npy(dict("<f4"), 12)), good},
      {"write the archive again with numpy.savez", opening(folder, "a.npz", std::string(100, 'x')), saved},
  });
}

TEST(HelpFollowed, OfTensorsOfOtherDtypes) {
  const Folder folder;
  const Storage made = from_data({1.0F, 2.0F}, {2}, "cpu");
  const std::string odd = R"({"w":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}})";
  const SafetensorsFile file = open_safetensors(folder.write("odd.safetensors", safetensors_bytes(odd, 2)));
  const auto writer = [&](TensorSpec spec, const SafetensorsWriteOptions& options = {}) {
    return SafetensorsWriter(folder / "out.safetensors", {std::move(spec)}, options);
  };
  follow({
      {"bytes() gives its bytes as u8", [&] { (void)file["w"]; }, [&] { EXPECT_EQ(file.bytes("w").num_elements(), 2U); }},
      {"give its bytes as u8", [&] { writer({.name = "w", .shape = {4}, .format_dtype = "F4"}).write("w", made); },
       [&] { writer({.name = "w", .shape = {4}, .format_dtype = "F4"}).write("w", file.bytes("w")); }},
      {"convert it with to() first", [&] { writer({.name = "w", .dtype = DType::f32, .shape = {2}, .format_dtype = "F99"}); },
       [&] { writer({.name = "w", .dtype = DType::bf16, .shape = {2}}).write("w", made.to(DType::bf16)); }},
      {"check the shape",
       [&] {
         writer({.name = "w", .shape = {INT64_MAX, 8}});
       },
       [&] { writer({.name = "w", .shape = {8}}); }},
      {"give it once",
       [&] {
         writer({.name = "w", .shape = {2}}, {.metadata = {{"format", "pt"}, {"format", "np"}}});
       },
       [&] {
         writer({.name = "w", .shape = {2}}, {.metadata = {{"format", "pt"}}});
       }},
      {"write several files, or shorter names", [&] { writer({.name = std::string(101 << 20, 'n'), .shape = {2}}); },
       [&] { writer({.name = "n", .shape = {2}}); }},
      {"name a file", [&] { (void)open_safetensors(""); }, [&] { (void)open_safetensors(folder / "odd.safetensors"); }},
  });
}

TEST(HelpFollowed, OfFilesThatOthersWrite) {
  const Folder folder;
  const std::string bytes = safetensors_bytes(kHeader, 8);
  const auto replaced = [&](std::size_t size) {
    const std::string path = folder.write("m.safetensors", bytes);
    const SafetensorsFile file = open_safetensors(path);
    folder.write("m.safetensors", std::string(size, 'x'));
    (void)file["w"].to(DType::f16);
  };
  const auto quiet = [&] { (void)open_safetensors(folder.write("m.safetensors", bytes))["w"].to(DType::f16); };
  follow({
      {"open it again when nobody writes to it", [&] { replaced(10); }, quiet},
      {"open it again; to use a file that others write to on purpose, map it with expect_changes", [&] { replaced(bytes.size()); },
       [&] {
         quiet();
         const std::string path = folder.write("shared.bin", std::string(64, 'x'));
         const Storage mapped = map_file(path, DType::u8, FileMode::read, {.expect_changes = true});
         std::fstream(path, std::ios::in | std::ios::out).write("abc", 3);
         EXPECT_EQ(mapped.item<std::uint8_t>({0}), 'a');
         (void)mapped.clone();
       }},
  });
}

TEST(HelpFollowed, OfLoads) {
  const Folder folder;
  const std::string path = folder / "m.safetensors";
  save_safetensors(path, {{"w", zeros({12 << 20}, DType::f32, "cpu")}});
  const auto loading = [&](ProgressCallback progress) { return [&, progress] { (void)load(path, "cpu", {.progress = progress}); }; };
  const auto to_the_end = loading([](const LoadProgress&) { return true; });
  follow({
      {"everything was released: load again, and return true from the callback", loading([](const LoadProgress&) { return false; }),
       to_the_end},
      {"let the callback return false to stop a load", loading([](const LoadProgress&) -> bool { throw std::runtime_error("stop"); }),
       [&] {
         const std::string stopped = help_of(loading([](const LoadProgress&) { return false; }));
         EXPECT_TRUE(stopped.starts_with("everything was released")) << stopped;
       }},
  });
}

TEST(HelpFollowed, OfLoadsThatGoWrong) {
  const Folder folder;
  const std::string path = folder / "m.safetensors";
  const auto write = [&] { save_safetensors(path, {{"w", zeros({12 << 20}, DType::f32, "cpu")}}); };
  write();
  const auto well = [&] {
    write();
    (void)load(path, "cpu");
  };
  follow({
      {"the disk or the network under the file has failed: look at the kernel's log, and load it from a copy",
       refused("preadv", EIO, [&] { (void)load(path, "cpu", {.threads = 1}); }),
       [&] {
         std::filesystem::copy_file(path, folder / "copy.safetensors");
         (void)load(folder / "copy.safetensors", "cpu");
       }},
      {"do not write to the file while it is loaded; to replace it, write another and rename it",
       [&] {
         (void)load(path, "cpu", {.threads = 1, .progress = [&](const LoadProgress&) {
                                    std::filesystem::resize_file(path, 5000);
                                    return true;
                                  }});
       },
       [&] {
         well();
         (void)load(path, "cpu", {.threads = 1, .progress = [&](const LoadProgress&) {
                                    write();  // another one, which is renamed
                                    return true;
                                  }});
       }},
  });
}

TEST(HelpFollowed, OfWhatTheSystemRefuses) {
  const Folder folder;
  const std::string path = folder.write("m.safetensors", safetensors_bytes(kHeader, 8));
  const auto open_it = [&] { (void)open_safetensors(path); };
  const auto save_it = [&] { save_safetensors(folder / "out.safetensors", {{"w", zeros({2}, DType::f32, "cpu")}}); };
  follow({
      {"check the path", [&] { (void)open_safetensors(folder / "nothing.safetensors"); }, open_it},
      {"check the path", [&] { (void)open_safetensors(folder / std::string(5000, 'x')); }, open_it},
      {"check the permissions of the file and its folder, and whether its file system is mounted read-only",
       refused("open", EACCES, open_it), open_it},
      {"raise the limit with ulimit -n, or close what is not needed", refused("open", EMFILE, open_it), open_it},
      {"give a regular file: copy what comes from a pipe or a device into one", [] { (void)open_safetensors("/dev/zero"); }, open_it},
      {"name a regular file, or one that is not there yet", [] { save_npy("/dev/zero", zeros({2}, DType::f32, "cpu")); }, save_it},
      {"name a file in it", [&] { save_npy(folder.path(), zeros({2}, DType::f32, "cpu")); },
       [&] { save_npy(folder / "a.npy", zeros({2}, DType::f32, "cpu")); }},
      {"the disk or the network behind the file failed: look at the system's log, and try again", refused("pread", EIO, open_it), open_it},
      {"free space on the disk, or write to another", refused("pwrite", ENOSPC, save_it), save_it},
      {"free space within the quota, or write to another disk", refused("pwrite", EDQUOT, save_it), save_it},
      {"check the path, and the file system that it is on",
       [&] {
         const RefusedCall no("ftruncate", EIO, 1);  // the first one empties the file
         (void)map_file(folder / "new.bin", {4096}, DType::u8, FileMode::create);
       },
       [&] { (void)map_file(folder / "new.bin", {4096}, DType::u8, FileMode::create); }},
      {"free space on the disk, or write to another",
       [&] { (void)map_file(folder / "new.bin", {INT64_MAX / 2}, DType::u8, FileMode::create); },
       [&] { (void)map_file(folder / "new.bin", {4096}, DType::u8, FileMode::create); }},
  });
}

TEST(HelpFollowed, OfPathsThatNameAFolder) {
  const Folder folder;
  const std::vector<NamedTensor> tensors = {{"w", zeros({2}, DType::f32, "cpu")}};
  const auto save = [&] { save_safetensors(folder / "m.safetensors", tensors); };
  follow({
      {"name a file in it", [&] { save_safetensors(folder.path() + "/", tensors); }, save},
      {"name a file in it", [&] { (void)map_file(folder.path(), DType::u8); },
       [&] { (void)map_file(folder / "m.safetensors", DType::u8); }},
  });
}

TEST(HelpFollowed, OfMappingsThatTheSystemRefuses) {
  const Folder folder;
  const std::string path = folder.write("a.bin", std::string(16384, 'x'));
  const auto map_it = [&] { (void)map_file(path, DType::u8); };
  follow({{"raise the limits (ulimit -v, sysctl vm.max_map_count), or map or read the file in parts", refused("mmap", ENOMEM, map_it), [&] {
             map_it();  // with limits that allow it
             for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{8192}})
               (void)map_file(path, {8192}, DType::u8, FileMode::read, {.offset = offset});
             std::string part(8192, ' ');
             EXPECT_TRUE(std::ifstream(path).read(part.data(), 8192));
           }}});
}

// The limit on the length of files that this process writes (ulimit -f), until the object ends.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit now{bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &now), 0);
  }
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(HelpFollowed, OfFilesThatAreLongerThanTheLimit) {
  const Folder folder;
  const Storage half = zeros({24 << 10}, DType::u8, "cpu");
  const auto save_both = [&] { save_safetensors(folder / "both.safetensors", {{"v", half}, {"w", half}}); };
  const auto limited = [](rlim_t bytes, const std::function<void()>& attempt) {
    return [=] {
      const FileLimit limit(bytes);
      attempt();
    };
  };
  const auto save_each = [&] {
    for (const char* name : {"v", "w"}) save_safetensors(folder / name, {{name, half}});
  };
  follow({
      {"raise the limit (ulimit -f), or write several files", limited(32_KiB, save_both), limited(64_KiB, save_both)},
      {"raise the limit (ulimit -f), or write several files", limited(32_KiB, save_both), limited(32_KiB, save_each)},
  });
}

// A folder where anyone may put a file, as /tmp, and a file of somebody else in it.
TEST(HelpFollowed, OfFilesOfSomebodyElse) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a file of another user";
  const Folder own;
  const Folder anyones;
  std::filesystem::permissions(anyones.path(), std::filesystem::perms::all | std::filesystem::perms::sticky_bit);
  const std::string path = anyones.write("m.safetensors", "theirs");
  ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  const auto save = [](const std::string& where) { return [where] { save_safetensors(where, {{"w", zeros({2}, DType::f32, "cpu")}}); }; };
  follow({
      {"write to a folder of your own, or remove what is there first", save(path), save(own / "m.safetensors")},
      {"write to a folder of your own, or remove what is there first", save(path),
       [&] {
         std::filesystem::remove(path);
         save(path)();
       }},
  });
}

}  // namespace
}  // namespace berth::testing
