// Recorded routing as decode steps of batches: how many tokens of each step choose each expert.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::bench {

class RecordedBatches {
 public:
  explicit RecordedBatches(const std::string& path);  // a trace of any kind; errors as trace::open_trace

  std::uint32_t experts() const { return experts_; }  // N of a layer
  std::uint32_t layers() const { return layers_; }
  std::size_t sequences() const { return ids_.size(); }

  // Takes the sequences in order, so many at once; one that has ended is replaced by the next, until fewer
  // are left. Returns the number of steps: 0 if there are fewer sequences.
  std::size_t batch(std::size_t sequences);
  // (N): the tokens of each expert in a layer of a step of the last batch(). Replaces `out`.
  void count(std::size_t step, std::size_t layer, std::vector<std::uint32_t>& out) const;

 private:
  struct Token {
    std::size_t sequence = 0, token = 0;
  };
  std::size_t tokens(std::size_t sequence) const { return ends_[sequence][0].size(); }

  std::uint32_t experts_ = 0, layers_ = 0;
  std::vector<std::vector<std::vector<std::uint16_t>>> ids_;  // [sequence][layer]: of all tokens
  std::vector<std::vector<std::vector<std::uint32_t>>>
      ends_;  // [sequence][layer][token]: the token's end in ids_
  std::vector<std::vector<Token>> steps_;
};

}  // namespace sluice::bench
