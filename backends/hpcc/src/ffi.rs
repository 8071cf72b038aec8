//! Products of matrices. The library takes pointers; views that were checked against their slices stand before it.

#![allow(unsafe_code)]

use crate::threads::{at_once, begin};

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

/// Products with fewer operations are not worth a thread of their own.
const WORTH_A_THREAD: f64 = 4e6;

/// C <- alpha A B + beta C on so many threads, each of which has rows of C.
///
/// # Panics
/// If the shapes do not go together, or several threads are to have a C that is not by rows.
pub(crate) fn multiply_on(threads: usize, alpha: f64, a: View<'_>, b: View<'_>, beta: f64, c: ViewMut<'_>) {
    let ViewMut { data, shape } = c;
    let operations = 2.0 * (shape.rows * shape.columns) as f64 * a.shape.columns as f64;
    let threads = threads.min(shape.rows).min((operations / WORTH_A_THREAD) as usize);
    if threads < 2 {
        return multiply(alpha, a, b, beta, ViewMut { data, shape });
    }
    assert!(shape.across == 1, "{shape:?} on {threads} threads");
    let (mut parts, mut rest) = (Vec::new(), data);
    for at in 0..threads {
        let rows = begin(shape.rows, threads, at)..begin(shape.rows, threads, at + 1);
        let end = if at + 1 == threads { rest.len() } else { rows.len() * shape.down };
        let (own, after) = rest.split_at_mut(end);
        rest = after;
        let left = View::new(&a.data[rows.start * a.shape.down..], Shape { rows: rows.len(), ..a.shape });
        parts.push((left, ViewMut::new(own, Shape { rows: rows.len(), ..shape })));
    }
    at_once(parts, |(left, into)| multiply(alpha, left, b, beta, into));
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
        product(
            (rows, inner, columns),
            (alpha, beta),
            (a.data.as_ptr(), stride(a.shape.down), stride(a.shape.across)),
            (b.data.as_ptr(), stride(b.shape.down), stride(b.shape.across)),
            (data.as_mut_ptr(), stride(shape.down), stride(shape.across)),
        );
    }
}

/// An address, and how far apart neighbours of a column and of a row are.
type Matrix<P> = (P, isize, isize);

/// # Safety
/// Every element of A and B may be read, every one of C written, and C overlaps neither.
#[cfg(not(feature = "avx"))]
unsafe fn product(
    (rows, inner, columns): (usize, usize, usize),
    (alpha, beta): (f64, f64),
    a: Matrix<*const f64>,
    b: Matrix<*const f64>,
    c: Matrix<*mut f64>,
) {
    // SAFETY: the caller's.
    unsafe {
        matrixmultiply::dgemm(rows, inner, columns, alpha, a.0, a.1, a.2, b.0, b.1, b.2, beta, c.0, c.1, c.2);
    }
}

/// # Safety
/// As above.
#[cfg(feature = "avx")]
unsafe fn product(
    (rows, inner, columns): (usize, usize, usize),
    (alpha, beta): (f64, f64),
    a: Matrix<*const f64>,
    b: Matrix<*const f64>,
    c: Matrix<*mut f64>,
) {
    // Its kernels go along columns: a product by rows is that of the transposed matrices in the other order.
    let turn = |(at, down, across): Matrix<*const f64>| (at, across, down);
    let by_rows = c.2 < c.1;
    let (rows, columns) = if by_rows { (columns, rows) } else { (rows, columns) };
    let (left, right) = if by_rows { (turn(b), turn(a)) } else { (a, b) };
    let (at, down, across) = if by_rows { (c.0, c.2, c.1) } else { c };
    let multiply = gemm_f64::gemm::f64::get_gemm_fn();
    // SAFETY: the caller's; a C that is scaled by nothing is not read.
    unsafe {
        multiply(
            rows,
            columns,
            inner,
            at,
            across,
            down,
            beta != 0.0,
            left.0,
            left.2,
            left.1,
            right.0,
            right.2,
            right.1,
            beta,
            alpha,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
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
    fn threads_make_the_same_product() {
        let (rows, inner, columns) = (203, 150, 201);
        let number = |at: usize| (at as f64 * 0.7).sin();
        let a: Vec<f64> = (0..rows * inner).map(number).collect();
        let b: Vec<f64> = (0..inner * columns).map(|at| number(at + 100)).collect();
        // Rows of C are apart, and what is between them stays as it was.
        let made = |threads| {
            let mut c = vec![1.0; rows * (columns + 3) - 3];
            let (left, right) = (
                View::new(&a, Shape::by_rows(rows, inner, inner)),
                View::new(&b, Shape::by_rows(inner, columns, columns)),
            );
            let into = ViewMut::new(&mut c, Shape::by_rows(rows, columns, columns + 3));
            multiply_on(threads, 2.0, left, right, 0.5, into);
            c
        };
        let (one, three) = (made(1), made(3));
        assert!(one.iter().zip(&three).all(|(one, three)| (one - three).abs() < 1e-12));
        assert_eq!(three[columns..][..3], [1.0; 3]);
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
