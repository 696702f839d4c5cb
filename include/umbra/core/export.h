// What the shared library shows: everything else in it is hidden.
#pragma once

/// Stands before the name of a namespace whose declarations programs may use: `namespace UMBRA_API umbra {`.
#define UMBRA_API [[gnu::visibility("default")]]
