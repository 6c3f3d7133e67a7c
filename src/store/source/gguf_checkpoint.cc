#include "store/source/gguf_checkpoint.h"

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "store/source/gguf_weights.h"
#include "store/tensor_list.h"

namespace sluice::store {
namespace {

class GgufCheckpoint final : public Checkpoint {
 public:
  explicit GgufCheckpoint(std::string path) : path_(std::move(path)) {
    const std::vector<GgufPart> parts = read_gguf_parts(path_);
    for (const GgufPart& part : parts) files_.push_back(part.path);
    GgufWeights weights = gguf_weights(parts);
    tensors_ = std::move(weights.tensors.tensors);
    places_ = std::move(weights.weights.places);
  }

  const std::string& path() const override { return path_; }
  bool packed() const override { return false; }
  const std::vector<std::string>& weight_files() const override { return files_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override { return find_tensor(tensors_, name); }
  std::string codec() const override { return "none"; }
  std::optional<std::string> find_file(std::string_view) const override { return std::nullopt; }
  std::string files_directory() const override { return std::filesystem::path(path_).parent_path().string(); }
  void check_files() const override {}
  std::shared_ptr<const GgufHeader> gguf() const override {
    return std::make_shared<const GgufHeader>(read_gguf(InputFile::open(path_)));
  }

  StoredPiece locate(const Piece& piece) const override {
    const TensorInfo& tensor = checked_tensor(tensors_, piece, path_);
    const TensorPlace& place = places_[static_cast<std::size_t>(&tensor - tensors_.data())];
    StoredPiece stored;
    stored.dtype = tensor.dtype;
    stored.elements = piece.elements;
    stored.shape = matrix_shape(tensor.shape, piece.first_element, piece.elements);
    stored.format = tensor.format != nullptr ? tensor.format : codec::word_format(tensor.dtype);
    const auto [offset, length] = tensor.format != nullptr ? whole_blocks(tensor, piece)
                                                           : std::pair(tensor.bytes_of(piece.first_element),
                                                                       tensor.bytes_of(piece.elements));
    stored.planes[0].extent = {place.file, place.offset + offset, length};
    return stored;
  }

  std::vector<Piece> pieces_of(std::string_view tensor) const override {
    return {whole_tensor(tensors_, tensor, path_)};
  }

 private:
  // Where whole rows of a tensor in blocks lie: its rows are whole blocks (read_gguf).
  std::pair<Bytes, Bytes> whole_blocks(const TensorInfo& tensor, const Piece& piece) const {
    const std::uint64_t columns = tensor.shape.back();
    SLUICE_CHECK(piece.first_element % columns == 0 && piece.elements % columns == 0, piece.tensor);
    return {tensor.format->plane_bytes({piece.first_element / columns, columns}, 0),
            tensor.format->plane_bytes({piece.elements / columns, columns}, 0)};
  }

  const std::string path_;
  std::vector<std::string> files_;
  std::vector<TensorInfo> tensors_;
  std::vector<TensorPlace> places_;  // parallel to tensors_
};

}  // namespace

std::unique_ptr<Checkpoint> open_gguf(const std::string& path) {
  return std::make_unique<GgufCheckpoint>(path);
}

}  // namespace sluice::store
