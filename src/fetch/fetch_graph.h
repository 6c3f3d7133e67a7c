// The task graph of one expert on its way (SPEC §1.3, §1.5): reads, then checks of what was read, decodes of
// exponent chunks, and merges into words; and which of these operations can be done now. Knows no threads, no
// queues and no bytes: FetchExecutor does the work and says what has happened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fetch/fetch_request.h"

namespace sluice::fetch {

// Calls come in this order: begin(); add() for every tensor; then name_reads() and settle(); then what
// happens. Keeps its memory from expert to expert. Thread-compatible.
class FetchGraph {
 public:
  enum class Kind : std::uint8_t { kCheck, kDecode, kMerge };
  enum class State : std::uint8_t { kBlocked, kReady, kTaken, kDone };
  struct Operation {
    Kind kind = Kind::kCheck;
    State state = State::kBlocked;
    std::uint16_t piece = 0, chunk = 0;
    std::uint64_t turn = 0;  // its place in the order of all operations of all experts
  };
  // Indices of operations that have become ready: the functions below append to it.
  using Ready = std::vector<std::uint32_t>;

  void clear();
  bool empty() const { return first_op_.empty(); }
  // `request` must outlive the run; its `view` may be set later, by add_words().
  void begin(const FetchRequest& request);
  // Adds the operations of one tensor. `turn`: of the first of them; advanced behind the last.
  void add(std::uint16_t tensor, std::uint64_t& turn);
  // The request's view, which was null, has been set: its words are made after all.
  void add_words(std::uint64_t& turn, Ready& ready);
  // Appends the runs that one region of a tensor needs read and that were not named before.
  void name_reads(std::uint16_t tensor, bool rest, std::vector<std::uint32_t>& runs);
  void settle(Ready& ready);  // makes ready what waits for no read

  void arrived(std::uint32_t run, Ready& ready);
  void read_ended() { --reads_left_; }  // its expert was given up: the bytes are not looked at
  void cancel_reads(std::uint32_t count) { reads_left_ -= count; }
  Operation take(std::uint32_t op);
  // A taken operation is done. `merged`: it was a decode, and its chunk has also been merged.
  void finish(std::uint32_t op, bool merged, Ready& ready);
  void drop(std::uint32_t op) { end(op); }  // a taken operation of an expert that was given up
  void give_up();                           // ends all operations that nobody has taken

  bool complete() const { return reads_left_ == 0 && ops_left_ == 0; }
  const Operation& operation(std::uint32_t op) const { return operations_[op]; }
  // Whether the bytes of this piece that are not exponents are in memory and checked.
  bool base_is_ready(std::uint16_t piece) const { return base_ready_[piece]; }

 private:
  void append(Kind kind, std::uint16_t piece, std::size_t chunk, State state, std::uint64_t& turn);
  void add_merges(std::uint16_t piece, std::uint64_t& turn);
  void base_arrived(std::size_t piece, Ready& ready);  // checked, or known to be good
  void make_ready(std::size_t op, Ready& ready);
  void end(std::size_t op);

  const FetchRequest* request_ = nullptr;
  // Operations of one piece are neighbours: the check and the decodes of all chunks; and the merges of all
  // chunks. A whole piece of a split expert is merged (copied) as if it were one chunk.
  std::vector<Operation> operations_;
  std::vector<std::uint32_t> first_op_;     // by piece: its check; then come the decodes of its chunks
  std::vector<std::uint32_t> first_merge_;  // by piece
  std::vector<bool> base_ready_;            // by piece
  std::vector<bool> base_in_, rest_in_;     // by run: it has arrived, or was in memory
  std::vector<bool> named_;                 // by run of the request
  std::uint32_t reads_left_ = 0, ops_left_ = 0;
};

}  // namespace sluice::fetch
