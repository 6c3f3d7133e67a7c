// Carries out reads and decoding of one layer's experts: the task DAG of ZipMoE (SPEC §1.3, §1.5) on one I/O
// thread and the idle threads of the pool. Work-conserving: each thread takes the first available operation
// in block order. Demand goes before prefetch: operations of a prefetch wait for available operations of
// demand, and its reads go to the disk, a few at a time, only while no demanded read is queued or in flight.
// A prefetch that fails is withdrawn and fails no event: an event that needs it reads it again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/machine/cpu.h"
#include "base/machine/thread_pool.h"
#include "experts/core/ids.h"
#include "fetch/chunk_decoder.h"
#include "fetch/expert_layout.h"
#include "fetch/timeline.h"
#include "fetch/weight_files.h"

namespace sluice::fetch {

enum class Urgency : std::uint8_t { kDemand, kPrefetch };

// One expert on its way to a view, `bf16` or `packed`. The caller sets the first block of members and leaves
// the job alone until the executor hands it back; buffers have the sizes that the layout says.
struct FetchJob {
  experts::ExpertId id;
  const ExpertLayout* layout = nullptr;
  std::byte* base = nullptr;  // of layout->base
  std::byte* rest = nullptr;  // of layout->rest; null if the view needs nothing of it
  // Where the matrices are made; `base` itself if it is the view. Null: the view is `packed`, or of slices,
  // and needs only regions that are read and checked.
  std::byte* view = nullptr;
  bool read_base = false, read_rest = false;  // false: the region's bytes are already in memory

  // Owned by the executor.
  std::vector<bool> base_in, rest_in;      // runs that have arrived
  std::vector<bool> base_ready;            // by piece: its bytes are in memory and checked
  std::vector<std::uint32_t> first_op;     // by piece: its check; then come the decodes of its chunks
  std::vector<std::uint32_t> first_merge;  // by piece
  std::uint32_t reads_left = 0, ops_left = 0;
  std::vector<bool> queued;  // runs of `base`, then of `rest`, that were given to the I/O thread
  Urgency urgency = Urgency::kDemand;
  bool withdrawn = false;
  Bytes begun = 0;  // bytes of its reads given to the disk …
  Bytes in_flight = 0;
  std::uint32_t reads_in_flight = 0;  // … and not yet processed

  void clear();  // as new, but keeps the memory of its vectors
};

// A tensor of a job, in the order of a schedule.
struct FetchTask {
  FetchJob* job = nullptr;
  std::uint16_t tensor = 0;
};

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
  // A prefetch that is under way is demanded now: it goes before everything that starts later, and next()
  // hands it out. Does nothing if it is already demanded, or withdrawn. `view`: a job of the view `packed`
  // makes the view `bf16` there after all; null: keeps its view.
  FetchProgress promote(FetchJob& job, std::byte* view = nullptr);
  // A prefetch is no longer wanted: reads that have not begun are not made. next(), poll() or reclaim() hand
  // it back once nothing writes to its buffers, whose content must not be used. Does nothing if it is already
  // withdrawn.
  FetchProgress withdraw(FetchJob& job);
  // Waits for a withdrawn job; throws as next() does.
  void reclaim(FetchJob& job);

  // A demanded job whose view is complete, in order of completion, or a withdrawn job; null if no job is
  // under way. Works while it waits. Rethrows the first failure, Error(kIo) or (kCorrupt), also of the reader
  // itself; cancel() must follow.
  FetchJob* next();
  // The same without waiting or working: null if there is no such job, or after a failure.
  FetchJob* poll();
  bool under_way() const { return jobs_ > 0; }  // jobs started and not handed out

  // Forgets all jobs. Afterwards no thread reads from or writes to their buffers.
  void cancel() noexcept;

  FetchCounters counters() const;
  // What the executor remembers of operations and reads, however long it has not been idle: of jobs under
  // way, and of others no more than as many again and a few.
  struct Remembered {
    std::size_t operations = 0, reads = 0;
  };
  Remembered remembered() const;
  const ChunkDecoder& decoder() const { return decoder_; }
  // Records every operation from now on into `timeline`, or stops (null). Not while jobs are under way.
  void record(Timeline* timeline) { timeline_ = timeline; }

 private:
  enum class Kind : std::uint8_t { kCheck, kDecode, kMerge };
  enum class OpState : std::uint8_t { kBlocked, kReady, kTaken, kDone };
  struct Op {
    FetchJob* job;
    std::uint16_t piece, chunk;
    Kind kind;
    OpState state;
  };
  struct Read {
    FetchJob* job;
    std::uint32_t run;  // of `base`, then of `rest`
    std::chrono::steady_clock::time_point submitted = {};
  };
  // One value for each urgency.
  template <class T>
  struct Each {
    T demand{}, prefetch{};
    T& operator[](Urgency urgency) { return urgency == Urgency::kDemand ? demand : prefetch; }
  };
  static constexpr std::size_t kMostPrefetchReads =
      2;  // in flight: what a demanded read may have to wait for

  void io_loop();
  bool reads_wait() const;                             // whether some read may be given to the disk now
  void take_reads(std::vector<std::size_t>& indices);  // takes the reads that may
  bool run_one();                                      // does the first ready operation; false: there is none
  void queue_reads(const FetchTask& task, bool rest);
  void queue_all_reads(FetchJob& job);
  void add_ops(const FetchTask& task);
  void add_merges(FetchJob& job, std::uint16_t piece);
  void make_words(FetchJob& job, std::byte* view);  // for a job of the view `packed`; mutex_ is held
  void settle(FetchJob& job);                       // makes operations available that wait for nothing
  void arrived(FetchJob& job, std::uint32_t run);
  void base_is_ready(FetchJob& job, std::size_t piece);
  void make_ready(std::uint32_t op);
  void finish_op(std::uint32_t op);
  void give_up(FetchJob& job);  // withdraws it; mutex_ is held
  void if_complete(FetchJob& job);
  void handed_back(FetchJob& job);             // it is not under way any more; mutex_ is held
  void forget_operations();                    // of jobs that were handed back
  std::uint32_t place_of(const Op& op) const;  // in ops_, now
  FetchProgress progress(const FetchJob& job) const;
  void clock_demand();  // call after every change of what is demanded; mutex_ is held
  template <class Work>
  void each_op(const FetchJob& job, Work work);
  void announce();  // wakes sleepers for new work; mutex_ is held
  const FileRun& run_of(const FetchJob& job, std::uint32_t run) const;

  WeightFiles& files_;
  ThreadPool& pool_;
  const ChunkDecoder decoder_;
  Timeline* timeline_ = nullptr;
  std::size_t jobs_ = 0;  // owner only

  mutable std::mutex mutex_;  // protects all below, and the executor's part of every job
  std::condition_variable owner_wakes_, io_wakes_;
  std::vector<Op> ops_;           // in block order; operations of jobs that were handed back have no job
  std::size_t left_over_ = 0;     // operations without a job in ops_: never most of many
  Each<std::size_t> first_open_;  // no operation of that urgency before it is ready
  Each<std::size_t> ready_;       // operations
  std::size_t running_ops_ = 0, new_ready_ = 0;
  Each<std::vector<std::size_t>> read_queue_;  // indices of reads_
  std::vector<Read> reads_;                    // queued or in flight, and free places
  std::vector<std::size_t> free_reads_;        // free places in reads_
  Each<std::size_t> in_flight_;                // reads that the I/O thread has taken and not processed
  std::vector<FetchJob*> complete_;            // to be handed out
  std::vector<FetchJob*> kept_;                // complete prefetches
  bool demand_pending_ = false;
  std::chrono::steady_clock::time_point demand_since_;
  std::exception_ptr failure_;
  bool cancelled_ = false, stopping_ = false;
  FetchCounters counters_;
  std::thread io_thread_;  // last: starts when all other members exist
};

}  // namespace sluice::fetch
