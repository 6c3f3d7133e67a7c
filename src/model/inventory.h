// The tensors of a checkpoint by name, with marks for those that the model has taken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::model {

using Shape = std::vector<std::uint64_t>;

// What gives the tensors their shapes.
struct Description {
  std::string_view name;               // in messages
  bool leading_ones_may_lack = false;  // a matrix of one row may be a vector
};

class Inventory {
 public:
  // `checkpoint` must outlive this.
  Inventory(const store::Checkpoint& checkpoint, const Description& description);

  bool has(std::string_view name) const { return index_.contains(name); }
  const store::TensorInfo& at(std::string_view name) const { return tensors_[index_.at(name)]; }
  // Takes a tensor. Error naming it unless it is there, with this shape and a type or format that can be
  // computed with.
  void take(std::string_view name, const Shape& shape);
  // Names of the tensors that nobody took. Error for one that `carried` does not know either.
  template <class Carried>
  std::vector<std::string> leave(const ModelConfig& config, const Carried& carried) const {
    std::vector<std::string> ignored;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (used_[i]) continue;
      if (!carried(tensors_[i].name)) throw unknown(tensors_[i], config);
      ignored.push_back(tensors_[i].name);
    }
    return ignored;
  }
  Error error(ErrorKind kind, std::string_view message, std::string_view tensor) const;

 private:
  bool fits(const Shape& found, const Shape& wanted) const;
  void check_format(const store::TensorInfo& tensor) const;
  Error unknown(const store::TensorInfo& tensor, const ModelConfig& config) const;

  const std::string& path_;
  const Description description_;
  const std::vector<store::TensorInfo>& tensors_;
  std::vector<bool> used_;
  std::unordered_map<std::string_view, std::size_t> index_;
};

// The product, which tensor_table() has checked.
std::uint64_t elements(const Shape& shape);

}  // namespace sluice::model
