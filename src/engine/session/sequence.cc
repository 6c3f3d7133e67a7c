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
                   std::size_t positions, EncoderMemory encoder,
                   std::function<void(experts::SequenceId)> ended)
    : id_(id),
      pool_(pool),
      positions_(positions),
      encoder_layers_(config.encoder_layers),
      blocks_(pool.take(positions)),
      encoder_(std::move(encoder)),
      ended_(std::move(ended)) {}

Sequence::~Sequence() {
  pool_.give_back(blocks_);
  if (ended_) ended_(id_);
}

void Sequence::cut(std::size_t tokens) {
  SLUICE_CHECK(!in_pass_, "a sequence is cut while a pass computes its tokens");
  length_ = std::min(length_, tokens);
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
