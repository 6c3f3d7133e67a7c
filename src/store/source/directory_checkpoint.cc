#include "store/source/directory_checkpoint.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

#include "base/error.h"
#include "store/source/mxfp4_pairs.h"
#include "store/source/weight_files.h"
#include "store/tensor_list.h"

namespace sluice::store {
namespace {

class DirectoryCheckpoint final : public Checkpoint {
 public:
  DirectoryCheckpoint(std::string path, SourceDirectory directory, const Weights& weights)
      : path_(std::move(path)),
        directory_(std::move(directory)),
        read_(with_mxfp4_pairs(weights, path_)),
        places_(weights.places) {
    for (const WeightFile& file : weights.files) paths_.push_back(directory_.path + "/" + file.relative);
  }

  const std::string& path() const override { return path_; }
  bool packed() const override { return false; }
  const std::vector<std::string>& weight_files() const override { return paths_; }
  const std::vector<TensorInfo>& tensors() const override { return read_.tensors; }
  const TensorInfo* find(std::string_view name) const override { return find_tensor(read_.tensors, name); }
  std::string codec() const override { return "none"; }
  std::string files_directory() const override { return directory_.path; }
  void check_files() const override {}  // a directory has no checksums

  StoredPiece locate(const Piece& piece) const override {
    const TensorInfo& tensor = checked_tensor(read_.tensors, piece, path_);
    const auto& planes = read_.planes[static_cast<std::size_t>(&tensor - read_.tensors.data())];
    StoredPiece stored;
    stored.dtype = tensor.dtype;
    stored.format = tensor.format != nullptr ? tensor.format : codec::word_format(tensor.dtype);
    stored.elements = piece.elements;
    stored.shape = matrix_shape(tensor.shape, piece.first_element, piece.elements);
    if (tensor.format != nullptr) {
      locate_rows(tensor, piece, planes, stored);
      return stored;
    }
    const TensorPlace& place = places_[planes[0]];
    stored.planes[0].extent = {place.file, place.offset + tensor.bytes_of(piece.first_element),
                               tensor.bytes_of(piece.elements)};
    return stored;
  }

  std::vector<Piece> pieces_of(std::string_view tensor) const override {
    return {whole_tensor(read_.tensors, tensor, path_)};
  }

  std::optional<std::string> find_file(std::string_view relative) const override {
    if (directory_.find(relative) == nullptr) return std::nullopt;
    return directory_.path + "/" + std::string(relative);
  }

 private:
  // Whole rows of a tensor that is not words.
  void locate_rows(const TensorInfo& tensor, const Piece& piece,
                   const std::array<std::uint32_t, codec::kMostPlanes>& planes, StoredPiece& stored) const {
    const std::uint64_t columns = tensor.shape.back();
    SLUICE_CHECK(piece.first_element % columns == 0 && piece.elements % columns == 0, tensor.name);
    for (std::size_t plane = 0; plane < stored.format->plane_count(); ++plane) {
      const Bytes before = stored.format->plane_bytes({piece.first_element / columns, columns}, plane);
      const TensorPlace& place = places_[planes[plane]];
      stored.planes[plane].extent = {place.file, place.offset + before,
                                     stored.format->plane_bytes(stored.shape, plane)};
    }
  }

  const std::string path_;
  const SourceDirectory directory_;  // its own files, without subdirectories and excluded files
  const ReadTensors read_;
  const std::vector<TensorPlace> places_;  // places of the tensors of the files
  std::vector<std::string> paths_;
};

}  // namespace

std::unique_ptr<Checkpoint> open_directory(const std::string& path, const std::vector<std::string>& exclude) {
  SourceDirectory directory = scan_directory(path, exclude, Depth::kTop);
  const Weights weights = read_weights(directory.path, select_weights(directory, OtherWeights::kIgnore));
  return std::make_unique<DirectoryCheckpoint>(path, std::move(directory), weights);
}

}  // namespace sluice::store
