#include "fetch/fetch_graph.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::fetch {
namespace {

// Debug builds check resident bytes again whenever they make a view of them.
#ifdef NDEBUG
constexpr bool kCheckResident = false;
#else
constexpr bool kCheckResident = true;
#endif

bool needs_check(const FetchRequest& request, const PiecePlace& piece) {
  return piece.needs_check() && (request.read_base || kCheckResident);
}

// Resident parts were checked when they arrived; an LSB slice may not be needed at all.
bool needs_decode(const FetchRequest& request) {
  return request.rest != nullptr && (request.read_rest || request.view != nullptr || kCheckResident);
}

std::size_t merges(const FetchRequest& request, const PiecePlace& piece) {
  if (!request.layout->merged() || request.view == nullptr) return 0;
  return piece.coded() ? piece.chunks.size() : 1;
}

ReadRegion::Range runs_of(const ExpertLayout& layout, const PlanePlace& plane) {
  return layout.base.covering(plane.place, plane.bytes);
}

ReadRegion::Range runs_of(const ExpertLayout& layout, const codec::PlaneChunk& chunk) {
  return layout.rest.covering(chunk.place, chunk.bytes);
}

bool all_in(const std::vector<bool>& runs, ReadRegion::Range range) {
  for (std::uint32_t run = range.first; run < range.end; ++run)
    if (!runs[run]) return false;
  return true;
}

// Whether all planes of a piece that lie in `base` are there.
bool all_in(const std::vector<bool>& runs, const ExpertLayout& layout, const PiecePlace& piece) {
  return std::ranges::all_of(piece.base(),
                             [&](const PlanePlace& plane) { return all_in(runs, runs_of(layout, plane)); });
}

}  // namespace

void FetchGraph::clear() {
  request_ = nullptr;
  operations_.clear();
  first_op_.clear();
  first_merge_.clear();
  for (std::vector<bool>* flags : {&base_ready_, &base_in_, &rest_in_, &named_}) flags->clear();
  reads_left_ = ops_left_ = 0;
}

void FetchGraph::begin(const FetchRequest& request) {
  clear();
  request_ = &request;
  const ExpertLayout& layout = *request.layout;
  first_op_.assign(layout.pieces.size(), 0);
  first_merge_.assign(layout.pieces.size(), 0);
  base_ready_.assign(layout.pieces.size(), false);
  base_in_.assign(layout.base.runs.size(), !request.read_base);
  rest_in_.assign(layout.rest.runs.size(), !request.read_rest);
  named_.assign(layout.base.runs.size() + layout.rest.runs.size(), false);
}

void FetchGraph::append(Kind kind, std::uint16_t piece, std::size_t chunk, State state, std::uint64_t& turn) {
  operations_.push_back({kind, state, piece, static_cast<std::uint16_t>(chunk), turn++});
  ops_left_ += state == State::kDone ? 0 : 1;
}

void FetchGraph::add(std::uint16_t tensor, std::uint64_t& turn) {
  const PiecePlace& piece = request_->layout->pieces[tensor];
  first_op_[tensor] = static_cast<std::uint32_t>(operations_.size());
  append(Kind::kCheck, tensor, 0, needs_check(*request_, piece) ? State::kBlocked : State::kDone, turn);
  for (std::size_t chunk = 0; chunk < piece.chunks.size(); ++chunk)
    append(Kind::kDecode, tensor, chunk, needs_decode(*request_) ? State::kBlocked : State::kDone, turn);
  add_merges(tensor, turn);
}

void FetchGraph::add_merges(std::uint16_t piece, std::uint64_t& turn) {
  first_merge_[piece] = static_cast<std::uint32_t>(operations_.size());
  const std::size_t count = merges(*request_, request_->layout->pieces[piece]);
  for (std::size_t chunk = 0; chunk < count; ++chunk)
    append(Kind::kMerge, piece, chunk, State::kBlocked, turn);
}

void FetchGraph::add_words(std::uint64_t& turn, Ready& ready) {
  SLUICE_CHECK(request_->layout->merged());
  for (std::uint16_t p = 0; p < first_op_.size(); ++p) {
    add_merges(p, turn);
    if (!base_ready_[p]) continue;
    base_ready_[p] = false;
    base_arrived(p, ready);
  }
}

void FetchGraph::name_reads(std::uint16_t tensor, bool rest, std::vector<std::uint32_t>& runs) {
  if (!(rest ? request_->read_rest : request_->read_base)) return;
  const ExpertLayout& layout = *request_->layout;
  const PiecePlace& piece = layout.pieces[tensor];
  const auto name = [&](ReadRegion::Range range, std::size_t offset) {
    for (std::size_t run = offset + range.first; run < offset + range.end; ++run) {
      if (named_[run]) continue;
      named_[run] = true;
      ++reads_left_;
      runs.push_back(static_cast<std::uint32_t>(run));
    }
  };
  if (rest) {
    for (const codec::PlaneChunk& chunk : piece.chunks) name(runs_of(layout, chunk), layout.base.runs.size());
  } else {
    for (const PlanePlace& plane : piece.base()) name(runs_of(layout, plane), 0);
  }
}

void FetchGraph::settle(Ready& ready) {
  const ExpertLayout& layout = *request_->layout;
  for (std::size_t p = 0; p < layout.pieces.size(); ++p) {
    const PiecePlace& piece = layout.pieces[p];
    if (all_in(base_in_, layout, piece)) {
      if (operations_[first_op_[p]].state == State::kDone)
        base_arrived(p, ready);
      else
        make_ready(first_op_[p], ready);
    }
    for (std::size_t x = 0; x < piece.chunks.size(); ++x)
      if (all_in(rest_in_, runs_of(layout, piece.chunks[x]))) make_ready(first_op_[p] + 1 + x, ready);
  }
}

void FetchGraph::arrived(std::uint32_t run, Ready& ready) {
  --reads_left_;
  const ExpertLayout& layout = *request_->layout;
  const bool of_base = request_->is_of_base(run);
  if (!of_base) run -= static_cast<std::uint32_t>(layout.base.runs.size());
  const auto in = [run](ReadRegion::Range range) { return range.first <= run && run < range.end; };
  (of_base ? base_in_ : rest_in_)[run] = true;
  for (std::size_t p = 0; p < layout.pieces.size(); ++p) {
    const PiecePlace& piece = layout.pieces[p];
    if (of_base) {
      const bool has_part = std::ranges::any_of(
          piece.base(), [&](const PlanePlace& plane) { return in(runs_of(layout, plane)); });
      if (!has_part || !all_in(base_in_, layout, piece)) continue;
      if (operations_[first_op_[p]].state == State::kBlocked)
        make_ready(first_op_[p], ready);
      else
        base_arrived(p, ready);
      continue;
    }
    for (std::size_t x = 0; x < piece.chunks.size(); ++x) {
      const ReadRegion::Range range = runs_of(layout, piece.chunks[x]);
      if (in(range) && all_in(rest_in_, range)) make_ready(first_op_[p] + 1 + x, ready);
    }
  }
}

void FetchGraph::base_arrived(std::size_t p, Ready& ready) {
  if (base_ready_[p]) return;
  base_ready_[p] = true;
  const PiecePlace& piece = request_->layout->pieces[p];
  for (std::size_t x = 0; x < merges(*request_, piece); ++x)
    if (x >= piece.chunks.size() || operations_[first_op_[p] + 1 + x].state == State::kDone)
      make_ready(first_merge_[p] + x, ready);
}

void FetchGraph::make_ready(std::size_t op, Ready& ready) {
  if (operations_[op].state != State::kBlocked) return;
  operations_[op].state = State::kReady;
  ready.push_back(static_cast<std::uint32_t>(op));
}

FetchGraph::Operation FetchGraph::take(std::uint32_t op) {
  SLUICE_CHECK(operations_[op].state == State::kReady, "an operation is taken that is not ready");
  operations_[op].state = State::kTaken;
  return operations_[op];
}

void FetchGraph::end(std::size_t op) {
  operations_[op].state = State::kDone;
  --ops_left_;
}

void FetchGraph::finish(std::uint32_t op, bool merged, Ready& ready) {
  const Operation& done = operations_[op];
  if (done.kind == Kind::kCheck) base_arrived(done.piece, ready);
  if (done.kind == Kind::kDecode) {
    const std::size_t merge = first_merge_[done.piece] + done.chunk;
    if (merged)
      end(merge);
    else if (request_->view != nullptr && base_ready_[done.piece])
      make_ready(merge, ready);
  }
  end(op);
}

void FetchGraph::give_up() {
  for (std::size_t op = 0; op < operations_.size(); ++op) {
    const State state = operations_[op].state;
    if (state == State::kReady || state == State::kBlocked) end(op);
  }
}

}  // namespace sluice::fetch
