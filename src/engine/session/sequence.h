// One sequence: the key/value cache of its positions so far and, behind an encoder, the data that the decoder
// attends to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/session/encoder_memory.h"
#include "engine/session/kv_pool.h"
#include "experts/core/sequence_span.h"

namespace sluice::engine {

// Bytes of the account `kv` for this many sequences of this many positions each, and of an encoder's input.
Bytes kv_bytes(const model::ModelConfig& config, DType dtype, std::size_t sequences, std::size_t positions,
               std::size_t encoder_positions = 0);

// Thread-compatible. Holds blocks of a pool, which must outlive it; gives them back when it ends. Other
// holders may read what it has written, up to shared_tokens(): that stays as it is.
class Sequence {
 public:
  // Called when a sequence ends, before it gives back its blocks.
  using Ended = std::function<void(const Sequence&)>;

  // Without room; add_room() gives it some.
  Sequence(experts::SequenceId id, const model::ModelConfig& config, KvPool& pool, EncoderMemory encoder,
           Ended ended = {});
  // Takes blocks for `positions` tokens. Error(kBudget).
  Sequence(experts::SequenceId id, const model::ModelConfig& config, KvPool& pool, std::size_t positions,
           EncoderMemory encoder, Ended ended = {});
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  experts::SequenceId id() const { return id_; }  // also after clear() and cut(): one for the object's life
  std::size_t length() const { return length_; }  // tokens whose keys and values are stored
  std::size_t positions() const { return positions_; }     // most tokens
  void advance(std::size_t tokens) { length_ += tokens; }  // whose rows are there
  void computed(std::size_t tokens, experts::StepKind kind) {
    advance(tokens);
    in_prompt_ = kind == experts::StepKind::kPrompt;
  }
  // The last of its tokens were computed as a prompt's. More of a prompt goes on with that.
  bool in_prompt() const { return in_prompt_; }
  void clear() { cut(0); }
  void cut(std::size_t tokens);  // keeps the first `tokens`. REQUIRES: at least shared_tokens()

  // The encoder's input: its number of tokens (0: not yet encoded), and the residual stream of each token.
  std::size_t encoder_length() const { return encoder_length_; }
  std::size_t encoder_positions() const { return encoder_.positions(); }
  void set_encoder_length(std::size_t tokens) { encoder_length_ = tokens; }
  kernels::Floats encoder_hidden(std::size_t position) const { return encoder_.hidden(position); }

  // A sequence is in one pass at a time; its length changes only when the pass ends, and clear() and cut()
  // are not allowed while it is in one.
  void join_pass();
  void leave_pass() { in_pass_ = false; }

  // Keys and values of one layer, of the encoder or of the decoder, by position.
  kernels::CacheRows keys(std::size_t layer);
  kernels::CacheRows values(std::size_t layer);
  // Keys and values that a decoder layer makes from the encoder's output, by position.
  KvRows cross(std::size_t layer) { return encoder_.cross(layer - encoder_layers_); }

  // For who manages the pool (prefix_cache.h). Blocks by position / kernels::kCacheBlock.
  std::span<const KvPool::BlockId> blocks() const { return blocks_; }
  // Takes over blocks, behind those that it has: room for `positions` tokens in all.
  void add_room(std::span<const KvPool::BlockId> blocks, std::size_t positions);
  // Takes over a block in the place of another, which it gives back. REQUIRES: the same rows up to length().
  void replace_block(std::size_t index, KvPool::BlockId block);
  std::size_t shared_tokens() const { return shared_tokens_; }  // that others may read
  void share(std::size_t tokens);                               // the first `tokens`, from now on

 private:
  bool of_encoder(std::size_t layer) const { return layer < encoder_layers_; }

  const experts::SequenceId id_;
  KvPool& pool_;
  const std::size_t encoder_layers_;
  std::vector<KvPool::BlockId> blocks_;
  EncoderMemory encoder_;
  std::size_t positions_ = 0, length_ = 0, shared_tokens_ = 0, encoder_length_ = 0;
  bool in_pass_ = false, in_prompt_ = false;
  Ended ended_;
};

}  // namespace sluice::engine
