// The executor while it is never idle: jobs that overlap without end.
#include "fetch/fetch_executor.h"

#include <deque>

#include "device/host_buffer.h"
#include "fetch/memory/expert_store_fixture.h"

namespace sluice::fetch {
namespace {

using experts::ExpertId;

class FetchExecutorTest : public testing::ExpertStoreTest {
 protected:
  // A job and its buffers.
  struct Fetch {
    FetchJob job;
    device::HostBuffer base, rest, view;
  };
  std::unique_ptr<Fetch> fetch_of(ExpertId id) {
    auto fetch = std::make_unique<Fetch>();
    const ExpertLayout& layout = store_->layout(id);
    const auto take = [&](Bytes bytes) {
      return device::HostBuffer(accountant_, device::Account::kStaging, bytes);
    };
    fetch->view = take(layout.view_bytes);
    fetch->base = take(layout.base.bytes);
    fetch->rest = take(layout.rest.bytes);
    FetchRequest& job = fetch->job.request;
    job.id = id;
    job.layout = &layout;
    job.base = fetch->base.data();
    job.rest = fetch->rest.data();
    job.view = fetch->view.data();
    job.read_base = job.read_rest = true;
    return fetch;
  }
};

TEST_F(FetchExecutorTest, JobsThatOverlapWithoutEndAreForgottenOneByOne) {
  open(packed("native"), 4, 4);
  ThreadPool pool(3);
  FetchOptions options;
  options.io = io_;
  WeightFiles files(*checkpoint_, options);
  FetchExecutor executor(files, pool, best_isa(), "native");
  std::vector<std::vector<std::byte>> truths;
  for (std::uint16_t e = 0; e < 6; ++e) truths.push_back(truth({0, e}));
  constexpr std::size_t kAtOnce = 3, kJobs = 600;
  std::deque<std::unique_ptr<Fetch>> under_way;
  std::size_t operations = 0, reads = 0;
  for (std::size_t started = 0; started < kJobs; ++started) {
    under_way.push_back(fetch_of({0, static_cast<std::uint16_t>(started % 6)}));
    std::vector<FetchTask> tasks;
    for (std::uint16_t tensor = 0; tensor < 3; ++tensor) tasks.push_back({&under_way.back()->job, tensor});
    const std::uint32_t end = 3;
    executor.start(tasks, {&end, 1}, Urgency::kPrefetch);
    if (started % 7 == 3) {  // one that nobody wants any more
      executor.withdraw(under_way.back()->job);
      executor.reclaim(under_way.back()->job);
      under_way.pop_back();
    }
    if (under_way.size() < kAtOnce) continue;
    const std::unique_ptr<Fetch> oldest = std::move(under_way.front());
    under_way.pop_front();
    executor.promote(oldest->job);
    ASSERT_EQ(executor.next(), &oldest->job);
    const std::vector<std::byte>& expected = truths[oldest->job.request.id.index];
    std::vector<std::byte> found;
    for (const PiecePlace& piece : oldest->job.request.layout->pieces)
      found.insert(found.end(), oldest->view.data() + piece.view_place,
                   oldest->view.data() + piece.view_place + piece.view_bytes());
    ASSERT_EQ(found, expected) << started;
    ASSERT_FALSE(under_way.empty()) << "the executor was idle, so nothing of the past could stay";
    operations = std::max(operations, executor.remembered().operations);
    reads = std::max(reads, executor.remembered().reads);
  }
  // A job has less than 64 of each, and nothing is left over.
  EXPECT_LE(operations, 64 * kAtOnce);
  EXPECT_LE(reads, 64 * kAtOnce);
  executor.cancel();
}

}  // namespace
}  // namespace sluice::fetch
