// Owns: see plan.h: from a guard set to its flat form.
#include "guards/plan.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"

namespace graphlift::guards {

namespace {

// An int that varies gives its value to a symbol.
class BindInt final : public LeafCheck {
 public:
  BindInt(ir::SymbolId symbol, int64_t lowest, bool first) : symbol_(symbol), lowest_(lowest), first_(first) {}

  bool check(PyObject* object, int64_t* symbols) const override {
    int64_t value;
    if (!read(object, &value) || value < lowest_) return false;
    if (!first_) return symbols[symbol_] == value;
    symbols[symbol_] = value;
    return true;
  }
  std::string text(const std::string& origin) const override {
    return cat(origin, " is an int, called s", symbol_, ", at least ", lowest_);
  }
  std::string explain(PyObject* object) const override {
    int64_t value;
    if (!read(object, &value)) return "is no int of 64 bits";
    if (value < lowest_) return cat("is ", value, ", less than ", lowest_);
    return cat("is ", value, ", another value than s", symbol_, " has elsewhere");
  }
  int cost() const override { return 1; }

 private:
  static bool read(PyObject* object, int64_t* value) {
    if (!PyLong_CheckExact(object)) return false;
    int overflow = 0;
    *value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0;
  }

  ir::SymbolId symbol_;
  int64_t lowest_;
  bool first_;
};

// Places of the origins in the plan, and what belongs to each.
struct Layout {
  std::vector<int32_t> node_of;  // by origin; -1: nobody needs it
  std::vector<OriginId> order;   // by node
};

void mark(const OriginTable& origins, OriginId id, std::vector<bool>* needed) {
  GL_CHECK(id >= 0 && static_cast<size_t>(id) < origins.size(), "a guard on an unknown origin");
  for (; id != kNoOrigin && !(*needed)[static_cast<size_t>(id)]; id = origins.at(id).parent)
    (*needed)[static_cast<size_t>(id)] = true;
}

std::vector<bool> needed_origins(const GuardSet& guards, const std::vector<OriginId>& fetches) {
  std::vector<bool> needed(guards.origins().size(), false);
  for (const auto& entry : guards.entries) {
    mark(guards.origins(), entry.where, &needed);
    if (applies(entry.kind) == Applies::TwoNodes) mark(guards.origins(), static_cast<OriginId>(entry.number), &needed);
  }
  for (const auto& [where, check] : guards.checks) mark(guards.origins(), where, &needed);
  for (const auto& row : guards.int_symbols) mark(guards.origins(), row.where, &needed);
  for (const auto& row : guards.distinct_objects)
    for (const auto* ids : {&row.apart, &row.others})
      for (OriginId id : *ids) mark(guards.origins(), id, &needed);
  for (OriginId id : fetches) mark(guards.origins(), id, &needed);
  return needed;
}

// Preorder; children in the order in which they were first asked for. A parent's id is below its children's.
Layout lay_out(const OriginTable& origins, const std::vector<bool>& needed) {
  std::vector<std::vector<OriginId>> children(origins.size() + 1);
  for (OriginId id = static_cast<OriginId>(origins.size()); id-- > 0;)  // backwards: the stack below turns it round
    if (needed[static_cast<size_t>(id)]) children[static_cast<size_t>(origins.at(id).parent + 1)].push_back(id);
  Layout layout{std::vector<int32_t>(origins.size(), -1), {}};
  std::vector<OriginId> stack = children[0];
  while (!stack.empty()) {
    const OriginId id = stack.back();
    stack.pop_back();
    layout.node_of[static_cast<size_t>(id)] = static_cast<int32_t>(layout.order.size());
    layout.order.push_back(id);
    const auto& below = children[static_cast<size_t>(id) + 1];
    stack.insert(stack.end(), below.begin(), below.end());
  }
  return layout;
}

Node make_node(const Origin& origin, const Layout& layout, NodeDetails* details, int32_t* owned_count) {
  Node node;
  node.details = details;
  details->origin = origin;
  if (origin.parent != kNoOrigin) node.parent = layout.node_of[static_cast<size_t>(origin.parent)];
  if (!prepare_step(origin, &node.step)) {
    PyErr_Clear();
    GL_CHECK(false, "the key of an origin can't be hashed");
  }
  if (origin.kind == OriginKind::Constant) {
    details->constant = Handle(origin.key.get());
    details->origin.key.reset();
    node.step.key = nullptr;
  }
  const FetchRow& row = fetch_row(origin.kind);
  node.fetch = row.fetch;
  node.fits = row.fits;
  if (is_registered(origin.kind)) {
    details->registered = registered_fetch(origin.kind, origin.key.get());
    node.owned = (*owned_count)++;
  }
  return node;
}

// Sorts rows by node, then by cost, and tells each node its range.
template <typename Row, typename Cost>
void arrange(std::vector<Row>* rows, std::vector<Node>* nodes, int32_t Node::* begin, int32_t Node::* end, Cost cost) {
  std::stable_sort(rows->begin(), rows->end(),
                   [&](const Row& a, const Row& b) { return a.node != b.node ? a.node < b.node : cost(a) < cost(b); });
  size_t next = 0;
  for (size_t i = 0; i < nodes->size(); ++i) {
    (*nodes)[i].*begin = static_cast<int32_t>(next);
    while (next < rows->size() && (*rows)[next].node == static_cast<int32_t>(i)) ++next;
    (*nodes)[i].*end = static_cast<int32_t>(next);
  }
}

void set_ends(std::vector<Node>* nodes) {
  for (size_t i = nodes->size(); i-- > 0;) {
    Node& node = (*nodes)[i];
    node.end = std::max(node.end, static_cast<int32_t>(i) + 1);
    if (node.parent >= 0) {
      Node& parent = (*nodes)[static_cast<size_t>(node.parent)];
      parent.end = std::max(parent.end, node.end);
    }
  }
}

// Something else asked of the node too: then it must exist, and Missing never holds.
bool only_missing(const Node& node, const std::vector<Check>& checks) {
  if (node.check_begin == node.check_end || node.leaf_begin != node.leaf_end) return false;
  return std::all_of(checks.begin() + node.check_begin, checks.begin() + node.check_end,
                     [](const Check& check) { return applies(check.kind) == Applies::Nothing; });
}

}  // namespace

Plan::Plan(GuardSet guards, const std::vector<OriginId>& origins_to_fetch, PyCodeObject* code_of_frame)
    : globals(std::move(guards.globals)), code(Ref::borrow(reinterpret_cast<PyObject*>(code_of_frame))) {
  const OriginTable& origins = guards.origins();
  const Layout layout = lay_out(origins, needed_origins(guards, origins_to_fetch));
  auto place = [&](OriginId id) { return layout.node_of[static_cast<size_t>(id)]; };

  for (OriginId id : layout.order) {
    details.push_back(std::make_unique<NodeDetails>());
    nodes.push_back(make_node(origins.at(id), layout, details.back().get(), &owned_count));
  }
  set_ends(&nodes);

  for (const auto& entry : guards.entries) checks.push_back(make_check(entry, place(entry.where)));
  for (Check& check : checks) {
    if (applies(check.kind) == Applies::TwoNodes) check.number = place(static_cast<OriginId>(check.number));
  }
  arrange(&checks, &nodes, &Node::check_begin, &Node::check_end, [](const Check& check) { return cost(check.kind); });
  for (size_t i = 0; i < checks.size(); ++i)
    if (applies(checks[i].kind) == Applies::TwoNodes)
      pairs.push_back({checks[i].node, static_cast<int32_t>(checks[i].number), static_cast<int32_t>(i),
                       checks[i].kind == GuardKind::SameAs});

  for (auto& [where, check] : guards.checks) leaves.push_back({place(where), std::move(check)});
  std::stable_sort(guards.int_symbols.begin(), guards.int_symbols.end(),
                   [&](const auto& a, const auto& b) { return place(a.where) < place(b.where); });
  std::unordered_set<ir::SymbolId> bound;
  for (const auto& row : guards.int_symbols) {
    const bool first = bound.insert(row.symbol).second;
    leaves.push_back({place(row.where), std::make_unique<BindInt>(row.symbol, row.lowest, first)});
  }
  arrange(&leaves, &nodes, &Node::leaf_begin, &Node::leaf_end, [](const Leaf& leaf) { return leaf.check->cost(); });

  for (Node& node : nodes) node.may_miss = only_missing(node, checks);

  for (ir::SymGuard& guard : guards.symbolic) symbolic.emplace_back(std::move(guard));
  for (auto& row : guards.distinct_symbols) distinct_symbols.emplace_back(std::move(row.apart), row.others);
  for (auto& row : guards.distinct_objects) {
    for (auto* ids : {&row.apart, &row.others}) std::transform(ids->begin(), ids->end(), ids->begin(), place);
    distinct_objects.emplace_back(std::move(row.apart), row.others);
  }
  for (OriginId id : origins_to_fetch) fetches.push_back(place(id));
}

std::string Plan::text(int32_t node) const {
  std::vector<int32_t> path;
  for (; node >= 0; node = nodes[static_cast<size_t>(node)].parent) path.push_back(node);
  std::string words;
  for (size_t i = path.size(); i-- > 0;) {
    const NodeDetails& step = *details[static_cast<size_t>(path[i])];
    Origin origin = step.origin;
    if (origin.kind == OriginKind::Constant) origin.key = Ref::borrow(step.constant.get());
    words = step_text(origin, words, reinterpret_cast<PyCodeObject*>(code.get()));
  }
  return words;
}

int Plan::traverse(visitproc visit, void* arg) const {
  for (const auto& node : details) {
    Py_VISIT(node->origin.key.get());
    if (int stop = node->constant.traverse(visit, arg)) return stop;
  }
  for (const Check& check : checks) {
    Py_VISIT(check.constant.get());
    if (int stop = check.identity.traverse(visit, arg)) return stop;
  }
  for (const Leaf& leaf : leaves)
    if (int stop = leaf.check->traverse(visit, arg)) return stop;
  for (const auto& check : globals)
    if (int stop = check->traverse(visit, arg)) return stop;
  Py_VISIT(code.get());
  return 0;
}

}  // namespace graphlift::guards
