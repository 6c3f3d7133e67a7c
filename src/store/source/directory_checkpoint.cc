#include "store/source/directory_checkpoint.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

#include "base/error.h"
#include "store/source/weight_files.h"
#include "store/tensor_list.h"

namespace sluice::store {
namespace {

class DirectoryCheckpoint final : public Checkpoint {
 public:
  DirectoryCheckpoint(std::string path, SourceDirectory directory, Weights weights)
      : path_(std::move(path)), directory_(std::move(directory)), weights_(std::move(weights)) {
    for (const WeightFile& file : weights_.files) paths_.push_back(directory_.path + "/" + file.relative);
  }

  const std::string& path() const override { return path_; }
  bool packed() const override { return false; }
  const std::vector<std::string>& weight_files() const override { return paths_; }
  const std::vector<TensorInfo>& tensors() const override { return weights_.tensors; }
  const TensorInfo* find(std::string_view name) const override { return find_tensor(weights_.tensors, name); }
  std::string codec() const override { return "none"; }
  std::string files_directory() const override { return directory_.path; }
  void check_files() const override {}  // a directory has no checksums

  StoredPiece locate(const Piece& piece) const override {
    const TensorInfo& tensor = checked_tensor(weights_.tensors, piece, path_);
    const TensorPlace& place = weights_.places[static_cast<std::size_t>(&tensor - weights_.tensors.data())];
    StoredPiece stored;
    stored.dtype = tensor.dtype;
    stored.format = codec::word_format(tensor.dtype);
    stored.elements = piece.elements;
    stored.shape = matrix_shape(tensor.shape, piece.first_element, piece.elements);
    stored.planes[0].extent = {place.file, place.offset + tensor.bytes_of(piece.first_element),
                               tensor.bytes_of(piece.elements)};
    return stored;
  }

  std::vector<Piece> pieces_of(std::string_view tensor) const override {
    return {whole_tensor(weights_.tensors, tensor, path_)};
  }

  std::optional<std::string> find_file(std::string_view relative) const override {
    if (directory_.find(relative) == nullptr) return std::nullopt;
    return directory_.path + "/" + std::string(relative);
  }

 private:
  const std::string path_;
  const SourceDirectory directory_;  // its own files, without subdirectories and excluded files
  const Weights weights_;
  std::vector<std::string> paths_;
};

}  // namespace

std::unique_ptr<Checkpoint> open_directory(const std::string& path, const std::vector<std::string>& exclude) {
  SourceDirectory directory = scan_directory(path, exclude, Depth::kTop);
  Weights weights = read_weights(directory.path, select_weights(directory, OtherWeights::kIgnore));
  return std::make_unique<DirectoryCheckpoint>(path, std::move(directory), std::move(weights));
}

}  // namespace sluice::store
