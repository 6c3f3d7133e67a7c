#include "engine/session/sequence.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::engine {

Bytes kv_bytes(const model::ModelConfig& config, DType dtype, std::size_t sequences, std::size_t positions,
               std::size_t encoder_positions) {
  return KvPool::bytes(config, dtype, KvPool::rows_for(sequences, positions)) +
         sequences * EncoderMemory::bytes(config, dtype, encoder_positions);
}

Sequence::Sequence(experts::SequenceId id, const model::ModelConfig& config, KvPool& pool,
                   EncoderMemory encoder, Ended ended)
    : id_(id),
      pool_(pool),
      encoder_layers_(config.encoder_layers),
      encoder_(std::move(encoder)),
      ended_(std::move(ended)) {}

Sequence::Sequence(experts::SequenceId id, const model::ModelConfig& config, KvPool& pool,
                   std::size_t positions, EncoderMemory encoder, Ended ended)
    : Sequence(id, config, pool, std::move(encoder), std::move(ended)) {
  add_room(pool.take(positions), positions);
}

Sequence::~Sequence() {
  if (ended_) ended_(*this);
  pool_.give_back(blocks_);
}

void Sequence::cut(std::size_t tokens) {
  SLUICE_CHECK(!in_pass_, "a sequence is cut while a pass computes its tokens");
  SLUICE_CHECK(tokens >= shared_tokens_, "tokens are cut off that others read");
  if (tokens >= length_) return;
  length_ = tokens;
  in_prompt_ = false;  // what comes next goes on with nothing that was computed
}

void Sequence::add_room(std::span<const KvPool::BlockId> blocks, std::size_t positions) {
  blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
  positions_ = positions;
  SLUICE_CHECK((positions + kernels::kCacheBlock - 1) / kernels::kCacheBlock == blocks_.size());
}

void Sequence::replace_block(std::size_t index, KvPool::BlockId block) {
  const KvPool::BlockId before = std::exchange(blocks_[index], block);
  pool_.give_back({&before, 1});
}

void Sequence::share(std::size_t tokens) {
  SLUICE_CHECK(tokens <= length_, "tokens are shared that are not computed");
  shared_tokens_ = std::max(shared_tokens_, tokens);
}

void Sequence::join_pass() {
  SLUICE_CHECK(!in_pass_, "a sequence is in two passes");
  in_pass_ = true;
}

kernels::CacheRows Sequence::keys(std::size_t layer) {
  return of_encoder(layer) ? encoder_.self().keys()
                           : pool_.layer(layer - encoder_layers_).keys(blocks_.data());
}

kernels::CacheRows Sequence::values(std::size_t layer) {
  return of_encoder(layer) ? encoder_.self().values()
                           : pool_.layer(layer - encoder_layers_).values(blocks_.data());
}

}  // namespace sluice::engine
