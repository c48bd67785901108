// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "berth/berth.h"
#include "expect.h"

// For users of the shared-memory storages of ATen and Python: the corresponding calls of berth. The table is in
// docs/coming-from.md.
using namespace berth;

namespace {

// The other process of a queue: receives a storage, checks it, and writes to it.
int receive_in_child(const std::string& name) {
  Channel from_parent = Channel::connect(name);
  const Channel::Message got = from_parent.receive();
  if (got.tag != 42 || !got.storage || got.storage->item<float>({63}) != 1.5F) return 1;
  got.storage->fill(3);
  from_parent.send_bytes({}, 43);
  return 0;
}

}  // namespace

int main() {
  // at::new_shared_fd(bytes): unnamed shared memory, with its file descriptor.
  const NewShared fresh = new_shared(1 << 20);
  expect(fresh.location.descriptor >= 0 && fresh.location.size_bytes == 1 << 20, "a descriptor and a size come with it");
  expect(fresh.storage.is_shared(), "it is shared");

  // tensor.share_memory_(): a live storage, with its views, becomes shared in place.
  const Storage x = full({64, 64}, 1.5, DType::f32, "cpu");
  const Storage row = x.select(0, 3);
  share(x);
  expect(x.is_shared() && row.is_shared() && row.item<float>({63}) == 1.5F, "x and its view are, with their bytes");

  // queue.put(tensor), queue.get(): a channel to another process.
  const std::string queue = "example-queue-" + std::to_string(getpid());
  Listener listener(queue);
  const pid_t child = fork();
  if (child == 0) _exit(receive_in_child(queue));
  Channel to_child = listener.accept();
  to_child.send(row, 42);
  expect(to_child.receive().tag == 43, "the other process has received it");
  int status = 1;
  expect(waitpid(child, &status, 0) == child && status == 0, "with the bytes that were sent");
  expect(row.item<float>({63}) == 3.0F, "what it has written there is here");

  // A reduction to plain bytes, rebuilt elsewhere: a ticket. It is valid for one import, if not said otherwise.
  const Ticket ticket = export_ticket(x.transpose(0, 1));
  const Storage rebuilt = import_ticket(Ticket::from_bytes(ticket.bytes()));
  expect(rebuilt.shape() == Shape({64, 64}) && rebuilt.item<float>({0, 4}) == 1.5F, "a ticket carries shape, strides and offset");

  const Ticket for_each_worker = export_ticket(x, {.imports = 2});
  expect(import_ticket(for_each_worker).item<float>({0, 0}) == 1.5F && imports_left(for_each_worker) == 1, "a ticket for several imports");
  expect(refuse_ticket(for_each_worker) && imports_left(for_each_worker) == 0, "and the rest is revoked");

  // shared_memory.SharedMemory(name, create=True), and by name from elsewhere.
  const std::string name = "example-" + std::to_string(getpid());
  Storage w = create_shared(name, {1024}, DType::f32);
  w.fill(2);
  {
    const Storage v = open_shared(name, {.read_only = true});
    expect(v.item<float>({1023}) == 2.0F && v.is_read_only(), "the name gives the same bytes, to read only");
  }
  w.close();  // this also removes the creator's name
  expect(!unlink_shared(name), "the name went with its creator");
  return g_right ? 0 : 1;
}
