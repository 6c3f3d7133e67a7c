#include "device/chunked_link.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <string>

#include "base/error.h"
#include "base/machine/soon.h"

namespace sluice::device {
namespace {

using Order = std::pair<int, std::uint64_t>;  // class, number: the least goes first

int rank_of(Traffic traffic) {
  switch (traffic) {
    case Traffic::kDemand:
    case Traffic::kResult:
      return 0;
    case Traffic::kPrefetch:
      return 1;
    case Traffic::kUpdate:
      return 2;
  }
  SLUICE_CHECK(false);
}

Error withdrawn_error() { return {ErrorKind::kInterrupted, "a copy over the link was withdrawn"}; }
Error closed_error() { return {ErrorKind::kInterrupted, "the link was closed"}; }

}  // namespace

struct ChunkedLink::OneCopy final : Copy {
  std::uint64_t number = 0;
  bool back = false;                // from the device
  const std::byte* from = nullptr;  // on the host, or
  std::byte* to = nullptr;          // likewise
  Address on_device;
  Bytes bytes = 0;
  Signal signal;
  // The core's mutex protects all below.
  std::uint64_t turn = 0;  // in its class: when it came there
  Traffic traffic = Traffic::kDemand;
  Clock::Time ready{0};
  Bytes moved = 0, under_way = 0;  // under_way: of chunks that are moving
  std::size_t chunks = 0;          // that are moving
  bool begun = false, withdrawn = false, done = false;
  std::optional<Error> error;  // the first; then no more chunks begin

  Bytes started() const { return moved + under_way; }
  Progress progress() const {
    return {done ? CopyStage::kDone : begun ? CopyStage::kUnderWay : CopyStage::kWaiting, started()};
  }
  Order order() const { return {rank_of(traffic), turn}; }
};

// A chunk that is under way.
struct ChunkedLink::Piece {
  std::shared_ptr<OneCopy> copy;
  Bytes bytes = 0;
  std::optional<double> modelled;
  Clock::Time ready{0}, begun{0};
  std::optional<Error> error;  // nothing moves
};

struct ChunkedLink::Lane {
  explicit Lane(Clock& clock) : pacer(clock) {}
  std::condition_variable changed;
  std::map<Order, std::shared_ptr<OneCopy>> ready;  // copies of which chunks can begin
  Pacer pacer;
  std::deque<Piece> under_way;  // the lane's thread's own
};

struct ChunkedLink::Core {
  Core(LinkOptions options, std::unique_ptr<Mover> mover, Health& health, Clock& clock)
      : options(std::move(options)),
        mover(std::move(mover)),
        health(health),
        lanes{Lane(clock), Lane(clock)} {}

  const LinkOptions options;
  const std::unique_ptr<Mover> mover;
  Health& health;
  mutable std::mutex mutex;  // protects all below, but for the lanes' pacers
  std::array<Lane, 2> lanes;
  std::set<std::shared_ptr<OneCopy>> waiting;  // for their events
  std::array<TrafficCounters, kTraffics> counters;
  std::uint64_t copies = 0, turns = 0;
  bool stop = false;

  Lane& lane_of(const OneCopy& copy) { return lanes[copy.back && options.full_duplex ? 1 : 0]; }
  TrafficCounters& count(const OneCopy& copy) { return counters[static_cast<std::size_t>(copy.traffic)]; }
  // A lane that is paced is rarely without work: two chunks bridge the wake-up between them.
  std::size_t most_under_way() const {
    return std::min<std::size_t>(mover->most_under_way(), options.bytes_per_s ? 2 : ~std::size_t{0});
  }

  void release(const std::shared_ptr<OneCopy>& copy, const std::optional<Error>& error);
  void end(const std::shared_ptr<OneCopy>& copy, std::optional<Error> error,
           std::unique_lock<std::mutex>& lock);
  void run(Lane& lane);
  void start_chunk(Lane& lane, std::unique_lock<std::mutex>& lock);
  void finish_chunk(Lane& lane, std::unique_lock<std::mutex>& lock);
  std::optional<Error> finish_moving(Lane& lane, const Piece& piece);
  std::optional<Error> fault_of(const OneCopy& copy, Bytes moved);
};

// The event that the copy was to wait for is done.
void ChunkedLink::Core::release(const std::shared_ptr<OneCopy>& copy, const std::optional<Error>& error) {
  std::unique_lock lock(mutex);
  if (waiting.erase(copy) == 0) return;  // withdrawn, or the link was closed
  if (error) return end(copy, error, lock);
  Lane& lane = lane_of(*copy);
  copy->ready = lane.pacer.clock().now();
  lane.ready.emplace(copy->order(), copy);
  lane.changed.notify_all();
}

// Hooks run without the lock.
void ChunkedLink::Core::end(const std::shared_ptr<OneCopy>& copy, std::optional<Error> error,
                            std::unique_lock<std::mutex>& lock) {
  TrafficCounters& counted = count(*copy);
  if (copy->withdrawn) {
    counted.withdrawn += 1;
    counted.withdrawn_bytes += copy->moved;
  } else if (error) {
    counted.failed += 1;
  } else {
    counted.copies += 1;
  }
  copy->done = true;
  lock.unlock();
  if (error)
    copy->signal.fail(*error);
  else
    copy->signal.complete();
}

void ChunkedLink::Core::run(Lane& lane) {
  mover->admit_this_thread();
  const std::size_t most = most_under_way();
  std::unique_lock lock(mutex);
  for (;;) {
    wait_soon(lock, lane.changed, [&] { return stop || !lane.ready.empty() || !lane.under_way.empty(); });
    if (!stop && !lane.ready.empty() && lane.under_way.size() < most)
      start_chunk(lane, lock);
    else if (!lane.under_way.empty())
      finish_chunk(lane, lock);
    else
      return;
    if (!lock.owns_lock()) lock.lock();
  }
}

void ChunkedLink::Core::start_chunk(Lane& lane, std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<OneCopy> copy = lane.ready.begin()->second;
  const Bytes at = copy->started(), bytes = std::min(options.chunk, copy->bytes - at);
  Piece piece;
  piece.copy = copy;
  piece.bytes = bytes;
  piece.ready = copy->ready;
  if (options.bytes_per_s || options.latency_s > 0)
    piece.modelled = (at == 0 ? options.latency_s : 0) +
                     (options.bytes_per_s ? static_cast<double>(bytes) / *options.bytes_per_s : 0);
  copy->begun = true;
  copy->under_way += bytes;
  copy->chunks += 1;
  if (copy->started() == copy->bytes) lane.ready.erase(lane.ready.begin());
  lock.unlock();

  piece.error = fault_of(*copy, at);
  piece.begun = lane.pacer.clock().now();
  if (!piece.error && bytes > 0) {
    try {
      mover->start({.back = copy->back,
                    .from = copy->back ? nullptr : copy->from + at,
                    .to = copy->back ? copy->to + at : nullptr,
                    .on_unit = copy->on_device + at,
                    .bytes = bytes});
    } catch (const Error& error) {
      piece.error = error;
    }
  }

  const bool moves = !piece.error && bytes > 0 && !piece.modelled;

  lock.lock();
  if (piece.error) {
    if (!copy->error) copy->error = piece.error;
    lane.ready.erase(copy->order());
  }
  lane.under_way.push_back(std::move(piece));
  if (!moves || copy->error || copy->withdrawn || copy->started() != copy->bytes) return;
  // Only this thread ends a copy of which chunks are under way.
  lock.unlock();
  if (std::shared_ptr<void> mark = mover->mark(copy->back)) copy->signal.queued(std::move(mark));
}

// The mover is done with the piece; sleeps until the model is.
std::optional<Error> ChunkedLink::Core::finish_moving(Lane& lane, const Piece& piece) {
  if (piece.error) return piece.error;
  if (piece.bytes == 0 && !piece.modelled) return std::nullopt;
  std::optional<double> real;
  try {
    if (piece.bytes > 0) real = mover->finish(piece.copy->back);
  } catch (const Error& error) {
    return error;
  }
  if (!real) real = std::chrono::duration<double>(lane.pacer.clock().now() - piece.begun).count();
  lane.pacer.account(piece.ready, piece.modelled, *real);
  return std::nullopt;
}

void ChunkedLink::Core::finish_chunk(Lane& lane, std::unique_lock<std::mutex>& lock) {
  const Piece piece = std::move(lane.under_way.front());
  lane.under_way.pop_front();
  lock.unlock();
  const double busy_before = lane.pacer.counters().busy_s;
  const std::optional<Error> error = finish_moving(lane, piece);
  const double busy_s = lane.pacer.counters().busy_s - busy_before;

  lock.lock();
  const std::shared_ptr<OneCopy>& copy = piece.copy;
  copy->chunks -= 1;
  copy->under_way -= piece.bytes;
  if (error) {
    if (!copy->error) copy->error = error;
    lane.ready.erase(copy->order());
  } else {
    copy->moved += piece.bytes;
    count(*copy).bytes += piece.bytes;
    count(*copy).busy_s += busy_s;
  }
  if (copy->chunks > 0) return;
  std::optional<Error> ended = copy->error;
  if (!ended && copy->withdrawn) ended = withdrawn_error();
  if (ended || copy->moved == copy->bytes) end(copy, ended, lock);
}

std::optional<Error> ChunkedLink::Core::fault_of(const OneCopy& copy, Bytes moved) {
  const Fault fault = options.fault ? options.fault(copy.number, moved) : Fault::kNone;
  if (fault == Fault::kDeviceIsLost)
    health.lose(Error(ErrorKind::kIo, "the device does not answer any more").fix("start again"));
  if (std::optional<Error> lost = health.lost()) return lost;
  if (fault == Fault::kCopyFails)
    return Error(ErrorKind::kIo, "a copy over the link failed")
        .found(std::to_string(moved) + " of " + std::to_string(copy.bytes) + " bytes");
  return std::nullopt;
}

void MemoryMover::start(const LinkChunk& chunk) {
  const Access access(gate_);
  std::byte* const on_unit = access.data(chunk.on_unit, chunk.bytes);
  if (chunk.back)
    std::memcpy(chunk.to, on_unit, chunk.bytes);
  else
    std::memcpy(on_unit, chunk.from, chunk.bytes);
}

Bytes chunk_of(double bytes_per_s) {
  constexpr Bytes kLeast = 16 * kKiB;
  constexpr double kSeconds = 1e-3;  // the pacer's waits are of 0.3 ms or more
  return static_cast<Bytes>(std::clamp(bytes_per_s * kSeconds, double{kLeast}, double{kMiB}));
}

ChunkedLink::ChunkedLink(LinkOptions options, std::unique_ptr<Mover> mover, Health& health, Clock& clock)
    : core_(std::make_shared<Core>(std::move(options), std::move(mover), health, clock)) {
  SLUICE_CHECK(core_->options.chunk > 0 && core_->options.chunk <= kMostChunk);
  for (std::size_t lane = 0; lane < (core_->options.full_duplex ? 2 : 1); ++lane)
    threads_.emplace_back([core = core_.get(), lane] { core->run(core->lanes[lane]); });
}

ChunkedLink::~ChunkedLink() {
  std::unique_lock lock(core_->mutex);
  core_->stop = true;
  for (Lane& lane : core_->lanes) lane.changed.notify_all();
  close(std::exchange(core_->waiting, {}), lock);
  lock.unlock();
  for (std::thread& thread : threads_) thread.join();
  lock.lock();
  for (Lane& lane : core_->lanes) {
    std::set<std::shared_ptr<OneCopy>> rest;
    for (const auto& [order, copy] : std::exchange(lane.ready, {})) rest.insert(copy);
    close(rest, lock);
  }
}

// None of them has chunks under way.
void ChunkedLink::close(const std::set<std::shared_ptr<OneCopy>>& copies,
                        std::unique_lock<std::mutex>& lock) {
  for (const std::shared_ptr<OneCopy>& copy : copies) {
    core_->end(copy, closed_error(), lock);
    lock.lock();
  }
}

Ticket ChunkedLink::copy(std::span<const std::byte> from, Address to, Traffic traffic, const Event& after) {
  auto copy = std::make_shared<OneCopy>();
  copy->from = from.data();
  copy->on_device = to;
  copy->bytes = from.size();
  copy->traffic = traffic;
  return add(std::move(copy), after);
}

Ticket ChunkedLink::copy_back(Address from, std::span<std::byte> to, Traffic traffic, const Event& after) {
  auto copy = std::make_shared<OneCopy>();
  copy->back = true;
  copy->to = to.data();
  copy->on_device = from;
  copy->bytes = to.size();
  copy->traffic = traffic;
  return add(std::move(copy), after);
}

Ticket ChunkedLink::add(std::shared_ptr<OneCopy> copy, const Event& after) {
  copy->event = copy->signal.event();
  {
    const std::lock_guard lock(core_->mutex);
    copy->number = core_->copies++;
    copy->turn = core_->turns++;
    core_->waiting.insert(copy);
  }
  after.on_done([core = std::weak_ptr(core_), copy](const std::optional<Error>& error) {
    if (const std::shared_ptr<Core> alive = core.lock()) alive->release(copy, error);
  });
  return Ticket(copy);
}

Progress ChunkedLink::promote(const Ticket& ticket) {
  const auto copy = std::static_pointer_cast<OneCopy>(ticket.copy());
  const std::lock_guard lock(core_->mutex);
  const Progress progress = copy->progress();
  if (copy->done) return progress;
  if (rank_of(copy->traffic) == 0) return progress;
  core_->count(*copy).late += 1;
  auto& ready = core_->lane_of(*copy).ready;
  const bool is_ready = ready.erase(copy->order()) > 0;
  copy->traffic = Traffic::kDemand;
  copy->turn = core_->turns++;
  if (is_ready) ready.emplace(copy->order(), copy);
  return progress;
}

Progress ChunkedLink::withdraw(const Ticket& ticket) {
  const auto copy = std::static_pointer_cast<OneCopy>(ticket.copy());
  std::unique_lock lock(core_->mutex);
  const Progress progress = copy->progress();
  if (copy->done) return progress;
  copy->withdrawn = true;
  core_->waiting.erase(copy);
  core_->lane_of(*copy).ready.erase(copy->order());
  if (copy->chunks > 0) return progress;  // its lane ends it behind these
  core_->end(copy, withdrawn_error(), lock);
  return progress;
}

LinkCounters ChunkedLink::counters() const {
  LinkCounters counters;
  {
    const std::lock_guard lock(core_->mutex);
    counters.by_traffic = core_->counters;
  }
  counters.to_device = core_->lanes[0].pacer.counters();
  counters.from_device = core_->lanes[core_->options.full_duplex ? 1 : 0].pacer.counters();
  return counters;
}

}  // namespace sluice::device
