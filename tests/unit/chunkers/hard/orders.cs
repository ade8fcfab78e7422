using System;
[assembly: InternalsVisibleTo("Tests")]
namespace Shop.Orders
{
    /// <summary>Status of an order.</summary>
    public enum Status { New, Paid }
    public delegate void Changed(object sender, EventArgs e);
    public interface IRepo<T> where T : class
    {
        T Find(int id);
        int Count { get; }
        void Log(string m) { Console.WriteLine(m); }
    }
    [Serializable]
    public sealed class Order : Entity, IEquatable<Order>
    {
        private readonly List<Line> _lines = new();
        public event Changed OnChanged;
        public const int Max = 10;
        public Order(int id) : base(id) { }
        static Order() { }
        ~Order() { }
        public decimal Total => _lines.Sum(l => l.Price);
        public string Name { get; set; } = "";
        public Line this[int i] { get => _lines[i]; set => _lines[i] = value; }
        public static Order operator +(Order a, Order b) => a;
        public static implicit operator int(Order o) => o.Id;
        bool IEquatable<Order>.Equals(Order other) { return true; }
        public async Task<int> SaveAsync<T>(T x, CancellationToken ct = default) where T : new()
        {
            int Local(int q) { return q; }
            return await Task.FromResult(Local(1));
        }
#if DEBUG
        public void Dump() { }
#endif
        private class Nested { public void Inner() { } }
        public partial void OnThing();
    }
    public static class Extensions
    {
        public static bool IsPaid(this Order o) => o.Status == Status.Paid;
    }
    public record struct Point(int X, int Y) { public double Len() => 1; }
    public record Person(string Name);
    public ref struct Span { }
    file class Hidden { void X() {} }
}
namespace Other { class B { void M() {} } }
