// Carries out reads and decoding of one layer's experts: the task DAG of ZipMoE (SPEC §1.3, §1.5) on one I/O
// thread and the idle threads of the pool. Work-conserving: each thread takes the first available operation
// in block order. Demand goes before prefetch: operations of a prefetch wait for available operations of
// demand, and its reads go to the disk, a few at a time, only while no demanded read is queued or in flight.
// Updates come behind prefetches. What fails without being demanded is given up and fails no event: an event
// that needs it reads it again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/machine/cpu.h"
#include "base/machine/thread_pool.h"
#include "fetch/chunk_decoder.h"
#include "fetch/fetch_job.h"
#include "fetch/read_queue.h"
#include "fetch/ready_queue.h"
#include "fetch/timeline.h"
#include "fetch/weight_files.h"

namespace sluice::fetch {

// How far a prefetch had come when it was promoted or withdrawn.
struct FetchProgress {
  Bytes begun = 0;        // bytes of its reads given to the disk
  Bytes in_flight = 0;    // bytes of these that have not arrived
  bool complete = false;  // its view is complete
  bool withdrawn = false;
};

struct FetchCounters {
  double wait_s = 0;         // time in which next() had nothing to hand out and nothing to decode
  double decode_s = 0;       // sum over threads: checksums, exponent chunks, merges
  double demand_s = 0;       // time in which a demanded read was queued or in flight
  Bytes demand_bytes = 0;    // that arrived in that time for demand
  Bytes prefetch_bytes = 0;  // given to the disk for prefetches
  Bytes update_bytes = 0;    // … and for updates
};

// One owner thread calls everything except the pool's background work, which the executor supplies. All
// references must outlive it.
class FetchExecutor {
 public:
  FetchExecutor(WeightFiles& files, ThreadPool& pool, Isa isa, const std::string& codec);
  ~FetchExecutor();  // calls cancel()
  FetchExecutor(const FetchExecutor&) = delete;
  FetchExecutor& operator=(const FetchExecutor&) = delete;

  // Adds the blocks of tasks [0, block_end[0]), [block_end[0], block_end[1]) … behind those that are under
  // way. All tensors of a job that has tasks must be among them, each once. In a block, exponents are read
  // before the planes that they are merged with, both in order of tasks (SPEC §1.4). Before all others, in
  // file order, come jobs that decode nothing ahead (view null) or are one request to the device.
  void start(std::span<const FetchTask> tasks, std::span<const std::uint32_t> block_end,
             Urgency urgency = Urgency::kDemand);
  // A prefetch or an update that is under way is demanded now: it goes before everything that starts later,
  // and next() hands it out. Does nothing if it is already demanded, or withdrawn. `view`: a job of the view
  // `packed` makes the view `bf16` there after all; null: keeps its view.
  FetchProgress promote(FetchJob& job, std::byte* view = nullptr);
  // A prefetch or an update is no longer wanted: reads that have not begun are not made. next(), poll() or
  // reclaim() hand it back once nothing writes to its buffers, whose content must not be used. Does nothing
  // if it is already withdrawn.
  FetchProgress withdraw(FetchJob& job);
  // Waits for a withdrawn job; throws as next() does.
  void reclaim(FetchJob& job);

  // A demanded job or an update whose view is complete, in order of completion, or a job that was given up;
  // null if no job is under way. Works while it waits. Rethrows the first failure, Error(kIo) or (kCorrupt),
  // also of the reader itself; cancel() must follow.
  FetchJob* next();
  // The same without waiting or working: null if there is no such job, or after a failure.
  FetchJob* poll();

  // Forgets all jobs. Afterwards no thread reads from or writes to their buffers.
  void cancel() noexcept;

  FetchCounters counters() const;
  // Operations that are ready, and reads that wait or are in flight.
  struct Remembered {
    std::size_t operations = 0, reads = 0;
  };
  Remembered remembered() const;
  const ChunkDecoder& decoder() const { return decoder_; }
  // Records every operation from now on into `timeline`, or stops (null). Not while jobs are under way.
  void record(Timeline* timeline) { timeline_ = timeline; }

 private:
  struct Io;  // scratch of the I/O thread

  void io_loop();
  void take_reads(Io& io) const;  // mutex_ is held, here and where the next functions say nothing
  void carry_out_reads(Io& io);   // without mutex_
  void take_completions(Io& io);
  bool run_one();  // does the first ready operation; false: there is none. Without mutex_
  void carry_out(const FetchRequest& request, const FetchGraph::Operation& op, std::byte* view,
                 bool merge_too,
                 std::chrono::steady_clock::time_point& decoded) const;  // without mutex_
  void record(const FetchJob& job, const FetchGraph::Operation& op, bool merge_too,
              std::chrono::steady_clock::time_point begin, std::chrono::steady_clock::time_point decoded,
              std::chrono::steady_clock::time_point end);
  void add(const FetchTask& task);
  void queue_reads(const FetchTask& task, bool rest);
  void queue_ready(FetchJob& job);  // operations of the job in became_ready_
  void give_up(FetchJob& job);      // withdraws it
  void if_complete(FetchJob& job);
  void handed_back(FetchJob& job);  // it is not under way any more
  static FetchProgress progress(const FetchJob& job);
  void clock_demand();  // call after every change of what is demanded
  void announce();      // wakes sleepers for new work

  WeightFiles& files_;
  ThreadPool& pool_;
  const ChunkDecoder decoder_;
  Timeline* timeline_ = nullptr;
  std::size_t jobs_ = 0;  // owner only

  mutable std::mutex mutex_;  // protects all below, and the executor's part of every job
  std::condition_variable owner_wakes_, io_wakes_;
  ReadyQueue ready_;
  ReadQueue reads_;
  std::uint64_t next_turn_ = 0;  // the turn of the next operation
  std::size_t running_ops_ = 0, new_ready_ = 0;
  FetchGraph::Ready became_ready_;   // scratch
  std::vector<std::uint32_t> runs_;  // scratch
  std::vector<FetchJob*> complete_;  // to be handed out
  std::vector<FetchJob*> kept_;      // complete prefetches
  bool demand_pending_ = false;
  std::chrono::steady_clock::time_point demand_since_;
  std::exception_ptr failure_;
  bool cancelled_ = false, stopping_ = false;
  FetchCounters counters_;
  std::thread io_thread_;  // last: starts when all other members exist
};

}  // namespace sluice::fetch
