// Owns: the backend "reference": each node of a graph by torch's own kernel, one after another. The oracle for the
// others. Must not: change a graph, or be clever about numerics.
#pragma once

namespace graphlift::reference {

void register_reference_backend();  // once; later calls do nothing

}  // namespace graphlift::reference
