//! Products of matrices. The library takes pointers; views that were checked against their slices stand before it.

#![allow(unsafe_code)]

/// A matrix inside a slice: element (i, j) is at `i * down + j * across`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    data: &'a [f64],
    shape: Shape,
}

/// The same, to be written.
#[derive(Debug)]
pub(crate) struct ViewMut<'a> {
    data: &'a mut [f64],
    shape: Shape,
}

/// How many rows and columns, and how far apart neighbours are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) down: usize,
    pub(crate) across: usize,
}

impl Shape {
    /// Rows one after the other, `stride` apart.
    pub(crate) fn by_rows(rows: usize, columns: usize, stride: usize) -> Self {
        Shape { rows, columns, down: stride, across: 1 }
    }

    /// Columns one after the other, `stride` apart.
    pub(crate) fn by_columns(rows: usize, columns: usize, stride: usize) -> Self {
        Shape { rows, columns, down: 1, across: stride }
    }

    fn is_empty(self) -> bool {
        self.rows == 0 || self.columns == 0
    }

    /// Whether every element is inside a slice of `len`.
    fn fits(self, len: usize) -> bool {
        if self.is_empty() {
            return true;
        }
        let last = (self.rows - 1).checked_mul(self.down).zip((self.columns - 1).checked_mul(self.across));
        last.and_then(|(down, across)| down.checked_add(across)).is_some_and(|last| last < len)
    }

    /// Whether no two elements are at one place.
    fn is_injective(self) -> bool {
        (self.across == 1 && self.down >= self.columns) || (self.down == 1 && self.across >= self.rows)
    }
}

impl<'a> View<'a> {
    /// # Panics
    /// If an element is outside of the slice.
    pub(crate) fn new(data: &'a [f64], shape: Shape) -> Self {
        assert!(shape.fits(data.len()), "{shape:?} in {} numbers", data.len());
        View { data, shape }
    }
}

impl<'a> ViewMut<'a> {
    /// # Panics
    /// If an element is outside of the slice, or two are at one place.
    pub(crate) fn new(data: &'a mut [f64], shape: Shape) -> Self {
        assert!(shape.fits(data.len()) && shape.is_injective(), "{shape:?} in {} numbers", data.len());
        ViewMut { data, shape }
    }
}

/// C <- alpha A B + beta C.
///
/// # Panics
/// If the shapes do not go together.
pub(crate) fn multiply(alpha: f64, a: View<'_>, b: View<'_>, beta: f64, c: ViewMut<'_>) {
    let (rows, inner, columns) = (a.shape.rows, a.shape.columns, b.shape.columns);
    let ViewMut { data, shape } = c;
    let fit = b.shape.rows == inner && shape.rows == rows && shape.columns == columns;
    assert!(fit, "{:?} {:?} {shape:?}", a.shape, b.shape);
    if shape.is_empty() {
        return;
    }
    let stride = |of: usize| isize::try_from(of).expect("a slice is not that long");
    // SAFETY: every element of the three views is inside its slice, as their constructors made sure, also when `inner` is
    // 0 and A and B have none. C is borrowed mutably, so it overlaps neither A nor B, and its own elements are at places
    // of their own. Doubles have no invalid value.
    unsafe {
        matrixmultiply::dgemm(
            rows,
            inner,
            columns,
            alpha,
            a.data.as_ptr(),
            stride(a.shape.down),
            stride(a.shape.across),
            b.data.as_ptr(),
            stride(b.shape.down),
            stride(b.shape.across),
            beta,
            data.as_mut_ptr(),
            stride(shape.down),
            stride(shape.across),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_definition_in_every_order() {
        let (rows, inner, columns) = (5, 3, 4);
        let number = |at: usize| (at as f64 * 0.7).sin();
        let a: Vec<f64> = (0..rows * inner).map(number).collect();
        let b: Vec<f64> = (0..inner * columns).map(|at| number(at + 100)).collect();
        for by_rows in [true, false] {
            let shape = |r, c| if by_rows { Shape::by_rows(r, c, c) } else { Shape::by_columns(r, c, r) };
            let mut c = vec![1.0; rows * columns];
            let (left, right) = (View::new(&a, shape(rows, inner)), View::new(&b, shape(inner, columns)));
            multiply(2.0, left, right, 0.5, ViewMut::new(&mut c, shape(rows, columns)));
            let at = |of: Shape, i: usize, j: usize| i * of.down + j * of.across;
            for i in 0..rows {
                for j in 0..columns {
                    let sum: f64 =
                        (0..inner).map(|k| a[at(shape(rows, inner), i, k)] * b[at(shape(inner, columns), k, j)]).sum();
                    assert!((c[at(shape(rows, columns), i, j)] - (2.0 * sum + 0.5)).abs() < 1e-14);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "in 11 numbers")]
    fn a_view_beyond_its_slice_is_refused() {
        let data = [0.0; 11];
        View::new(&data, Shape::by_rows(3, 4, 4));
    }

    #[test]
    #[should_panic(expected = "in 12 numbers")]
    fn two_elements_at_one_place_are_refused() {
        let mut data = [0.0; 12];
        ViewMut::new(&mut data, Shape::by_rows(3, 4, 2));
    }
}
